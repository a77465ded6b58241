"""IncrementalAlterConfigs (API key 44), versions 0-1, flexible from 1."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int8, int16, int32, string


class AlterableConfig(Struct):
    name: str = field(string)
    config_operation: int = field(int8)
    value: str | None = field(string, nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: list[AlterableConfig] = array(AlterableConfig)


class IncrementalAlterConfigsRequest(Message, api_key=44, versions="0-1", flexible="1+"):
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = field(bool_)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)

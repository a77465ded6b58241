"""AlterConfigs (API key 33), versions 0-2, flexible from 2."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int8, int16, int32, string


class AlterableConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = field(bool_)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)

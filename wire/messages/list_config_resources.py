"""ListConfigResources (API key 74), versions 0-1, flexible from 0."""

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Struct):
    resource_name: str = field(string)
    resource_type: int = field(int8, "1+", default=16)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    config_resources: list[ConfigResource] = array(ConfigResource)

"""DescribeConfigs (API key 32), versions 1-4, flexible from 4."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configuration_keys: list[str] | None = array(string, nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+"):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = field(bool_)
    include_documentation: bool = field(bool_, "3+")


class DescribeConfigsSynonym(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")
    source: int = field(int8)


class DescribeConfigsResourceResult(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")
    read_only: bool = field(bool_)
    config_source: int = field(int8, default=-1)
    is_sensitive: bool = field(bool_)
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym)
    config_type: int = field(int8, "3+")
    documentation: str | None = field(string, "3+", nullable="0+")


class DescribeConfigsResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    throttle_time_ms: int = field(int32)
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)

"""ApiVersions (API key 18), versions 0-4, flexible from 3."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int16, int32, int64, string


class ApiVersionsRequest(Message, api_key=18, versions="0-4", flexible="3+"):
    client_software_name: str = field(string, "3+")
    client_software_version: str = field(string, "3+")


class ApiVersion(Struct):
    api_key: int = field(int16)
    min_version: int = field(int16)
    max_version: int = field(int16)


class SupportedFeatureKey(Struct):
    name: str = field(string)
    min_version: int = field(int16)
    max_version: int = field(int16)


class FinalizedFeatureKey(Struct):
    name: str = field(string)
    max_version_level: int = field(int16)
    min_version_level: int = field(int16)


class ApiVersionsResponse(Message, api_key=18, versions="0-4", flexible="3+"):
    error_code: int = field(int16)
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = field(int32, "1+")
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", tag=0)
    finalized_features_epoch: int = field(int64, "3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", tag=2)
    zk_migration_ready: bool = field(bool_, "3+", tag=3)

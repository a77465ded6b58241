"""UpdateFeatures (API key 57), versions 0-2, flexible from 0."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    feature: str = field(string)
    max_version_level: int = field(int16)
    allow_downgrade: bool = field(bool_, "0")
    upgrade_type: int = field(int8, "1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = field(bool_, "1+")


class UpdatableFeatureResult(Struct):
    feature: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1")

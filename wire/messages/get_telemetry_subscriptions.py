"""GetTelemetrySubscriptions (API key 71), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, array, bool_, field, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", flexible="0+"):
    client_instance_id: UUID = field(uuid)


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    client_instance_id: UUID = field(uuid)
    subscription_id: int = field(int32)
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = field(int32)
    telemetry_max_bytes: int = field(int32)
    delta_temporality: bool = field(bool_)
    requested_metrics: list[str] = array(string)

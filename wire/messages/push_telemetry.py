"""PushTelemetry (API key 72), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, bool_, bytes_, field, int8, int16, int32, uuid


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible="0+"):
    client_instance_id: UUID = field(uuid)
    subscription_id: int = field(int32)
    terminating: bool = field(bool_)
    compression_type: int = field(int8)
    metrics: bytes = field(bytes_)


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)

"""ExpireDelegationToken (API key 40), versions 1-2, flexible from 2."""

from klamm.wire.schema import Message, bytes_, field, int16, int32, int64


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+"):
    hmac: bytes = field(bytes_)
    expiry_time_period_ms: int = field(int64)


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    error_code: int = field(int16)
    expiry_timestamp_ms: int = field(int64)
    throttle_time_ms: int = field(int32)

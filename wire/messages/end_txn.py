"""EndTxn (API key 26), versions 0-5, flexible from 3."""

from klamm.wire.schema import Message, bool_, field, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    committed: bool = field(bool_)


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, "5+", default=-1)
    producer_epoch: int = field(int16, "5+", default=-1)

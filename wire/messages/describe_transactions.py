"""DescribeTransactions (API key 65), version 0, flexible from 0."""

from klamm.wire.schema import Message, Struct, array, field, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api_key=65, versions="0", flexible="0+"):
    transactional_ids: list[str] = array(string)


class TopicData(Struct):
    topic: str = field(string)
    partitions: list[int] = array(int32)


class TransactionState(Struct):
    error_code: int = field(int16)
    transactional_id: str = field(string)
    transaction_state: str = field(string)
    transaction_timeout_ms: int = field(int32)
    transaction_start_time_ms: int = field(int64)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    topics: list[TopicData] = array(TopicData)


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    transaction_states: list[TransactionState] = array(TransactionState)

"""AlterPartition (API key 56), versions 2-3, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, int64, uuid


class BrokerState(Struct):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)


class RequestPartitionData(Struct):
    partition_index: int = field(int32)
    leader_epoch: int = field(int32)
    new_isr: list[int] = array(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = field(int8)
    partition_epoch: int = field(int32)


class RequestTopicData(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


class AlterPartitionRequest(Message, api_key=56, versions="2-3", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    topics: list[RequestTopicData] = array(RequestTopicData)


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    isr: list[int] = array(int32)
    leader_recovery_state: int = field(int8)
    partition_epoch: int = field(int32)


class ResponseTopicData(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


class AlterPartitionResponse(Message, api_key=56, versions="2-3", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    topics: list[ResponseTopicData] = array(ResponseTopicData)

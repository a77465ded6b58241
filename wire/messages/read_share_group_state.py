"""ReadShareGroupState (API key 84), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, int64, string, uuid


class PartitionData(Struct):
    partition: int = field(int32)
    leader_epoch: int = field(int32)


class ReadStateData(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[ReadStateData] = array(ReadStateData)


class StateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    state_epoch: int = field(int32)
    start_offset: int = field(int64)
    state_batches: list[StateBatch] = array(StateBatch)


class ReadStateResult(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    results: list[ReadStateResult] = array(ReadStateResult)

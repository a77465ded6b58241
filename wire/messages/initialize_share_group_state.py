"""InitializeShareGroupState (API key 83), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int16, int32, int64, string, uuid


class PartitionData(Struct):
    partition: int = field(int32)
    state_epoch: int = field(int32)
    start_offset: int = field(int64)


class InitializeStateData(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[PartitionData] = array(PartitionData)


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)


class InitializeStateResult(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    results: list[InitializeStateResult] = array(InitializeStateResult)

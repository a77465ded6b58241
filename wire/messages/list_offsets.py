"""ListOffsets (API key 2), versions 1-11, flexible from 6."""

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = field(int32)
    current_leader_epoch: int = field(int32, "4+", default=-1)
    timestamp: int = field(int64)


class ListOffsetsTopic(Struct):
    name: str = field(string)
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+"):
    replica_id: int = field(int32)
    isolation_level: int = field(int8, "2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = field(int32, "10+")


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    timestamp: int = field(int64, default=-1)
    offset: int = field(int64, default=-1)
    leader_epoch: int = field(int32, "4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field(string)
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    throttle_time_ms: int = field(int32, "2+")
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)

"""AlterPartitionReassignments (API key 45), versions 0-1, flexible from 0."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int16, int32, string


class ReassignablePartition(Struct):
    partition_index: int = field(int32)
    replicas: list[int] | None = array(int32, nullable="0+", default=None)


class ReassignableTopic(Struct):
    name: str = field(string)
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    allow_replication_factor_change: bool = field(bool_, "1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class ReassignablePartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = field(string)
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    allow_replication_factor_change: bool = field(bool_, "1+", default=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)

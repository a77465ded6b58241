"""ElectLeaders (API key 43), versions 0-2, flexible from 2."""

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, string


class TopicPartitions(Struct):
    topic: str = field(string)
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+"):
    election_type: int = field(int8, "1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = field(int32, default=60000)


class PartitionResult(Struct):
    partition_id: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = field(string)
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)

"""DescribeQuorum (API key 55), versions 0-2, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class RequestPartitionData(Struct):
    partition_index: int = field(int32)


class RequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible="0+"):
    topics: list[RequestTopicData] = array(RequestTopicData)


class ReplicaState(Struct):
    replica_id: int = field(int32)
    replica_directory_id: UUID = field(uuid, "2+")
    log_end_offset: int = field(int64)
    last_fetch_timestamp: int = field(int64, "1+", default=-1)
    last_caught_up_timestamp: int = field(int64, "1+", default=-1)


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, "2+", nullable="2+")
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    high_watermark: int = field(int64)
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


class ResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class Node(Struct):
    node_id: int = field(int32)
    listeners: list[Listener] = array(Listener)


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible="0+"):
    error_code: int = field(int16)
    error_message: str | None = field(string, "2+", nullable="2+")
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    nodes: list[Node] = array(Node, "2+")

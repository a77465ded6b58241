"""Vote (API key 52), versions 0-2, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    bool_,
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
    replica_epoch: int = field(int32)
    replica_id: int = field(int32)
    replica_directory_id: UUID = field(uuid, "1+")
    voter_directory_id: UUID = field(uuid, "1+")
    last_offset_epoch: int = field(int32)
    last_offset: int = field(int64)
    pre_vote: bool = field(bool_, "2+")


class RequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


class VoteRequest(Message, api_key=52, versions="0-2", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+", default=None)
    voter_id: int = field(int32, "1+", default=-1)
    topics: list[RequestTopicData] = array(RequestTopicData)


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    vote_granted: bool = field(bool_)


class ResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class VoteResponse(Message, api_key=52, versions="0-2", flexible="0+"):
    error_code: int = field(int16)
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)

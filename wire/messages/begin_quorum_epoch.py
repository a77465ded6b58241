"""BeginQuorumEpoch (API key 53), versions 0-1, flexible from 1."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int16, int32, string, uint16, uuid


class RequestPartitionData(Struct):
    partition_index: int = field(int32)
    voter_directory_id: UUID = field(uuid, "1+")
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class RequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


class LeaderEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class BeginQuorumEpochRequest(Message, api_key=53, versions="0-1", flexible="1+"):
    cluster_id: str | None = field(string, nullable="0+", default=None)
    voter_id: int = field(int32, "1+", default=-1)
    topics: list[RequestTopicData] = array(RequestTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+")


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class ResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class BeginQuorumEpochResponse(Message, api_key=53, versions="0-1", flexible="1+"):
    error_code: int = field(int16)
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)

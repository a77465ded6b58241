"""FetchSnapshot (API key 59), versions 0-1, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    RecordsSlice,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    records,
    string,
    uint16,
    uuid,
)


class SnapshotId(Struct):
    end_offset: int = field(int64)
    epoch: int = field(int32)


class RequestPartitionSnapshot(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32)
    snapshot_id: SnapshotId = field(SnapshotId)
    position: int = field(int64)
    replica_directory_id: UUID = field(uuid, "1+", tag=0)


class RequestTopicSnapshot(Struct):
    name: str = field(string)
    partitions: list[RequestPartitionSnapshot] = array(RequestPartitionSnapshot)


class FetchSnapshotRequest(Message, api_key=59, versions="0-1", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+", tag=0, default=None)
    replica_id: int = field(int32, default=-1)
    max_bytes: int = field(int32, default=0x7FFFFFFF)
    topics: list[RequestTopicSnapshot] = array(RequestTopicSnapshot)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class ResponsePartitionSnapshot(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    snapshot_id: SnapshotId = field(SnapshotId)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, tag=0)
    size: int = field(int64)
    position: int = field(int64)
    unaligned_records: RecordsSlice = field(records)


class ResponseTopicSnapshot(Struct):
    name: str = field(string)
    partitions: list[ResponsePartitionSnapshot] = array(ResponsePartitionSnapshot)


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class FetchSnapshotResponse(Message, api_key=59, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    topics: list[ResponseTopicSnapshot] = array(ResponseTopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)

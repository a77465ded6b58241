"""Fetch (API key 1), versions 4-18, flexible from 12."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    RecordsSlice,
    Struct,
    array,
    field,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    uuid,
)


class ReplicaState(Struct):
    replica_id: int = field(int32, default=-1)
    replica_epoch: int = field(int64, default=-1)


class FetchPartition(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, "9+", default=-1)
    fetch_offset: int = field(int64)
    last_fetched_epoch: int = field(int32, "12+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1)
    partition_max_bytes: int = field(int32)
    replica_directory_id: UUID = field(uuid, "17+", tag=0)
    high_watermark: int = field(int64, "18+", tag=1, default=9223372036854775807)


class FetchTopic(Struct):
    topic: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    topic: str = field(string, "7-12")
    topic_id: UUID = field(uuid, "13+")
    partitions: list[int] = array(int32)


class FetchRequest(Message, api_key=1, versions="4-18", flexible="12+"):
    cluster_id: str | None = field(string, "12+", nullable="12+", tag=0, default=None)
    replica_id: int = field(int32, "0-14", default=-1)
    replica_state: ReplicaState = field(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, default=0x7FFFFFFF)
    isolation_level: int = field(int8)
    session_id: int = field(int32, "7+")
    session_epoch: int = field(int32, "7+", default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")
    rack_id: str = field(string, "11+")


class EpochEndOffset(Struct):
    epoch: int = field(int32, default=-1)
    end_offset: int = field(int64, default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


class SnapshotId(Struct):
    end_offset: int = field(int64, default=-1)
    epoch: int = field(int32, default=-1)


class AbortedTransaction(Struct):
    producer_id: int = field(int64)
    first_offset: int = field(int64)


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    high_watermark: int = field(int64)
    last_stable_offset: int = field(int64, default=-1)
    log_start_offset: int = field(int64, "5+", default=-1)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, nullable="4+")
    preferred_read_replica: int = field(int32, "11+", default=-1)
    records: RecordsSlice | None = field(records, nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="16+", default=None)


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "7+")
    session_id: int = field(int32, "7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)

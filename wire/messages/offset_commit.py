"""OffsetCommit (API key 8), versions 2-10, flexible from 8."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "6+", default=-1)
    committed_metadata: str | None = field(string, nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = field(string, "0-9")
    topic_id: UUID = field(uuid, "10+")
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+"):
    group_id: str = field(string)
    generation_id_or_member_epoch: int = field(int32, default=-1)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(int64, "2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetCommitResponseTopic(Struct):
    name: str = field(string, "0-9")
    topic_id: UUID = field(uuid, "10+")
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: int = field(int32, "3+")
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)

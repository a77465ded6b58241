"""OffsetFetch (API key 9), versions 1-10, flexible from 6."""

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
    uuid,
)


class OffsetFetchRequestTopic(Struct):
    name: str = field(string)
    partition_indexes: list[int] = array(int32)


class OffsetFetchRequestTopics(Struct):
    name: str = field(string, "8-9")
    topic_id: UUID = field(uuid, "10+")
    partition_indexes: list[int] = array(int32)


class OffsetFetchRequestGroup(Struct):
    group_id: str = field(string)
    member_id: str | None = field(string, "9+", nullable="9+", default=None)
    member_epoch: int = field(int32, "9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable="8+")


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+"):
    group_id: str = field(string, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = field(bool_, "7+")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "5-7", default=-1)
    metadata: str | None = field(string, nullable="0-7")
    error_code: int = field(int16)


class OffsetFetchResponseTopic(Struct):
    name: str = field(string)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, default=-1)
    metadata: str | None = field(string, nullable="8+")
    error_code: int = field(int16)


class OffsetFetchResponseTopics(Struct):
    name: str = field(string, "8-9")
    topic_id: UUID = field(uuid, "10+")
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


class OffsetFetchResponseGroup(Struct):
    group_id: str = field(string)
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = field(int16)


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: int = field(int32, "3+")
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = field(int16, "2-7")
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")

"""Classic groups and committed offsets, as `__consumer_offsets` stores them."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, bytes_, field, int32, int64, string, uuid


class LegacyOffsetCommitKey(Message, api_key=0, versions="0"):
    group: str = field(string)
    topic: str = field(string)
    partition: int = field(int32)


class LegacyOffsetCommitValue(Message, api_key=0, versions="0"):
    offset: int = field(int64)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)


class OffsetCommitKey(Message, api_key=1, versions="0"):
    group: str = field(string)
    topic: str = field(string)
    partition: int = field(int32)


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    offset: int = field(int64)
    leader_epoch: int = field(int32, "3+", default=-1)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)
    expire_timestamp: int = field(int64, "1", default=-1)
    topic_id: UUID = field(uuid, "4+", tag=0)


class GroupMetadataKey(Message, api_key=2, versions="0"):
    group: str = field(string)


class MemberMetadata(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout: int = field(int32, "1+", default=-1)
    session_timeout: int = field(int32)
    subscription: bytes = field(bytes_)
    assignment: bytes = field(bytes_)


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    protocol_type: str = field(string)
    generation: int = field(int32)
    protocol: str | None = field(string, nullable="0+")
    leader: str | None = field(string, nullable="0+")
    current_state_timestamp: int = field(int64, "2+", default=-1)
    members: list[MemberMetadata] = array(MemberMetadata)

"""The progress of share groups, as `__share_group_state` stores it."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, int64, string, uuid


class ShareSnapshotKey(Message, api_key=0, versions="0"):
    group_id: str = field(string)
    topic_id: UUID = field(uuid)
    partition: int = field(int32)


class StateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class ShareSnapshotValue(Message, api_key=0, versions="0", flexible="0+"):
    snapshot_epoch: int = field(int32)
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, tag=0, default=-1)
    create_timestamp: int = field(int64)
    write_timestamp: int = field(int64)
    state_batches: list[StateBatch] = array(StateBatch)


class ShareUpdateKey(Message, api_key=1, versions="0"):
    group_id: str = field(string)
    topic_id: UUID = field(uuid)
    partition: int = field(int32)


class ShareUpdateValue(Message, api_key=1, versions="0", flexible="0+"):
    snapshot_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, tag=0, default=-1)
    state_batches: list[StateBatch] = array(StateBatch)

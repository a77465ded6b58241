"""Share groups (KIP-932), as `__consumer_offsets` stores them."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, api_key=10, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class ShareGroupMemberMetadataValue(Message, api_key=10, versions="0", flexible="0+"):
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataKey(Message, api_key=11, versions="0"):
    group_id: str = field(string)


class ShareGroupMetadataValue(Message, api_key=11, versions="0", flexible="0+"):
    epoch: int = field(int32)
    metadata_hash: int = field(int64)


class ShareGroupTargetAssignmentMetadataKey(Message, api_key=12, versions="0"):
    group_id: str = field(string)


class ShareGroupTargetAssignmentMetadataValue(Message, api_key=12, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, api_key=13, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartition(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[int] = array(int32)


class ShareGroupTargetAssignmentMemberValue(Message, api_key=13, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentKey(Message, api_key=14, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartitions(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[int] = array(int32)


class ShareGroupCurrentMemberAssignmentValue(Message, api_key=14, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataKey(Message, api_key=15, versions="0"):
    group_id: str = field(string)


class TopicPartitionsInfo(Struct):
    topic_id: UUID = field(uuid)
    topic_name: str = field(string)
    partitions: list[int] = array(int32)


class TopicInfo(Struct):
    topic_id: UUID = field(uuid)
    topic_name: str = field(string)


class ShareGroupStatePartitionMetadataValue(Message, api_key=15, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)

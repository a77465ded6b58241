"""Consumer groups (KIP-848), as `__consumer_offsets` stores them."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    bytes_,
    field,
    int8,
    int32,
    int64,
    string,
    uuid,
)


class ConsumerGroupMetadataKey(Message, api_key=3, versions="0"):
    group_id: str = field(string)


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0", flexible="0+"):
    epoch: int = field(int32)
    metadata_hash: int = field(int64, tag=0)


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions="0"):
    group_id: str = field(string)


class PartitionMetadata(Struct):
    partition: int = field(int32)
    racks: list[str] = array(string)


class TopicMetadata(Struct):
    topic_id: UUID = field(uuid)
    topic_name: str = field(string)
    num_partitions: int = field(int32)
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions="0", flexible="0+"):
    topics: list[TopicMetadata] = array(TopicMetadata)


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class ClassicProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(bytes_)


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field(int32)
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0", flexible="0+"):
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = field(string, nullable="0+")
    rebalance_timeout_ms: int = field(int32, default=-1)
    server_assignor: str | None = field(string, nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, nullable="0+", tag=0
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions="0"):
    group_id: str = field(string)


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartition(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[int] = array(int32)


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartitions(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable="0+", tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions="0"):
    group_id: str = field(string)
    regular_expression: str = field(string)


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0", flexible="0+"):
    topics: list[str] = array(string)
    version: int = field(int64)
    timestamp: int = field(int64)

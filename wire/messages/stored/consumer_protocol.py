"""What members of a classic consumer group tell each other."""

from klamm.wire.schema import Message, Struct, array, bytes_, field, int32, string


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = field(string)
    partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array(
        ConsumerProtocolAssignmentTopicPartition
    )
    user_data: bytes | None = field(bytes_, nullable="0+", default=None)


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = field(string)
    partitions: list[int] = array(int32)


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string)
    user_data: bytes | None = field(bytes_, nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+"
    )
    generation_id: int = field(int32, "2+", default=-1)
    rack_id: str | None = field(string, "3+", nullable="3+", default=None)

"""The records that a consumer group writes, as 4.3 does.

The partition metadata of older brokers (record type 4) is no longer written: a hash in the group's
own record has replaced it. It is only removed where it is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from klamm.coordinator.consumer.expressions import ResolvedExpression
from klamm.coordinator.consumer.member import ConsumerMember, stored_partitions
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
)


def subscription_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """What the member said of itself."""
    return CoordinatorRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=None if member.classic is None else member.classic.stored(),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(
    group_id: str, member_id: str, target: Mapping[UUID, frozenset[int]]
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(target.items())
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp
        ),
    )


def current_assignment_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Where the member is on its way to the target."""
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=stored_partitions(member.assigned),
            partitions_pending_revocation=stored_partitions(member.pending_revocation),
        ),
    )


def expression_record(
    group_id: str, expression: str, resolved: ResolvedExpression
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp
        ),
    )


def subscription_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
    )


def epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
    )


def expression_tombstone(group_id: str, expression: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), None
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """All that is stored of a member goes, in the order that Kafka insists on."""
    return [
        current_assignment_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        subscription_tombstone(group_id, member_id),
    ]

"""The records of consumer groups, read back: the only code that changes what is stored of a group.

A record says what a thing is now, not how it changed, so that reading one twice does no harm, and
what compaction has left out is not missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from klamm.coordinator.consumer.expressions import ResolvedExpression
from klamm.coordinator.consumer.group import NO_EPOCH, ConsumerGroup
from klamm.coordinator.consumer.member import (
    LEAVE_EPOCH,
    ClassicDetails,
    ConsumerMember,
    partitions_from_stored,
)
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.group import Group
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from klamm.wire.schema import Message


def replay(groups: dict[str, Group], key: Any, value: Message | None) -> None:
    """Change the group that a record is about. A record with a value makes it a consumer group,
    whatever it was; a tombstone of a consumer group says nothing about a group of another kind."""
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del groups[key.group_id]
    else:
        _APPLY[type(key)](group, key, value)


def folded(group_id: str, records: Iterable[CoordinatorRecord]) -> ConsumerGroup:
    """The group that records make, among which are others than those of consumer groups."""
    groups: dict[str, Group] = {}
    for record in records:
        if type(record.key) in RECORD_KEYS:
            replay(groups, record.key, record.value)
    group = groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def _apply_metadata(
    group: ConsumerGroup, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    assert value is not None, "the tombstone of a group removes it"
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(
    group: ConsumerGroup,
    key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _apply_subscription(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.drop_member(key.member_id)
        return
    classic = value.classic_member_metadata
    group.put_member(
        replace(
            _member(group, key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=None if classic is None else ClassicDetails.from_stored(classic),
        )
    )


def _apply_target_epoch(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = NO_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _apply_current_assignment(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is None:
        # The tombstone of the subscription follows, and removes the member.
        if key.member_id in group.members:
            group.put_member(
                replace(
                    group.members[key.member_id],
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned={},
                    pending_revocation={},
                )
            )
        return
    epoch = value.member_epoch
    group.put_member(
        replace(
            _member(group, key.member_id),
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=partitions_from_stored(value.assigned_partitions, epoch),
            pending_revocation=partitions_from_stored(value.partitions_pending_revocation, epoch),
        )
    )


def _apply_expression(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.drop_expression(key.regular_expression)
    else:
        resolved = ResolvedExpression(frozenset(value.topics), value.version, value.timestamp)
        group.put_expression(key.regular_expression, resolved)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id)


_APPLY: dict[type[Message], Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _apply_metadata,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_subscription,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current_assignment,
    ConsumerGroupRegularExpressionKey: _apply_expression,
}
# The keys of the records that this file reads.
RECORD_KEYS = frozenset(_APPLY)

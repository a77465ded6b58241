"""Groups that move between the classic and the consumer protocol while they run (KIP-848).

A consumer that joins a classic group with ConsumerGroupHeartbeat makes it a consumer group, in
which the other members go on with the classic protocol. When the last member of the consumer
protocol leaves, it becomes a classic group again. Each way is one batch: tombstones of what the
group was, and the records of what it is. `group.consumer.migration.policy` says which ways are
open.

What is here decides and gives records; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from klamm.coordinator.assignor import Assignment
from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.classic.membership import select_protocol
from klamm.coordinator.classic.subscription import CONSUMER_PROTOCOL_TYPE
from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.embedded import (
    encoded_assignment,
    read_assignment,
    read_subscription,
)
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ClassicDetails, ConsumerMember
from klamm.coordinator.consumer.topics import SubscribedTopics
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord, Topics
from klamm.coordinator.settings import GroupSettings
from klamm.wire.errors import ErrorCode, WireError

UPGRADE_POLICIES = ("upgrade", "bidirectional")
DOWNGRADE_POLICIES = ("downgrade", "bidirectional")
DISABLED_POLICY = "disabled"


# To the consumer protocol.


def upgrade_records(
    group: ClassicGroup, topics: SubscribedTopics, settings: GroupSettings
) -> list[CoordinatorRecord]:
    """The records that make a consumer group of a classic group with members.

    Raises:
        CoordinatorError: GROUP_ID_NOT_FOUND, because this group has to stay what it is.
    """
    if settings.group_consumer_migration_policy not in UPGRADE_POLICIES:
        raise _no_upgrade(group, "online upgrade is disabled")
    if not group.uses_consumer_protocol:
        raise _no_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.group_consumer_max_size:
        raise _no_upgrade(group, "the group size exceeds the consumer group maximum size")
    try:
        members = _upgraded_members(group, topics)
    except WireError:
        raise _no_upgrade(group, "the embedded consumer protocol is malformed") from None
    group_id, epoch = group.group_id, group.generation
    names = frozenset[str]().union(*(member.subscribed_topic_names for member in members))
    return [
        *group.tombstones(),
        *(records.subscription_record(group_id, member) for member in members),
        records.epoch_record(group_id, epoch, topics.hash_of(names)),
        *(
            records.target_record(group_id, member.member_id, _without_epochs(member))
            for member in members
        ),
        # Nobody computed this target, so the first one need not wait.
        records.target_epoch_record(group_id, epoch, 0),
        *(records.current_assignment_record(group_id, member) for member in members),
    ]


def _upgraded_members(group: ClassicGroup, topics: SubscribedTopics) -> list[ConsumerMember]:
    """The members with what they have. Those who wait for the next generation have not agreed on a
    protocol yet, but could: that of the last one, if there is any, need not be known to all."""
    protocol = group.protocol
    if any(protocol not in member.protocol_names for member in group.members.values()):
        protocol = select_protocol(group.members.values())
    taken: set[tuple[UUID, int]] = set()
    members = []
    for member in group.members.values():
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _no_upgrade(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade",
            )
        assigned: dict[UUID, dict[int, int]] = {}
        for topic in assignment.assigned_partitions:
            for topic_id in topics.find([topic.topic]):
                # The leader assigned as it liked; here a partition has one owner.
                free = [each for each in topic.partitions if (topic_id, each) not in taken]
                taken.update((topic_id, each) for each in free)
                assigned[topic_id] = dict.fromkeys(free, group.generation)
        subscription = read_subscription(member.metadata(protocol))
        members.append(
            ConsumerMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id or None,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                subscribed_topic_names=frozenset(subscription.topics),
                classic=ClassicDetails(member.session_timeout_ms, member.protocols),
                member_epoch=group.generation,
                previous_member_epoch=group.generation,
                assigned=assigned,
            )
        )
    return members


def _without_epochs(member: ConsumerMember) -> Assignment:
    return {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}


def _no_upgrade(group: ClassicGroup, reason: str) -> CoordinatorError:
    return CoordinatorError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


# To the classic protocol.


def can_downgrade(
    group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: GroupSettings
) -> bool:
    """Whether the group becomes a classic one when these members leave."""
    gone = {member.member_id for member in leaving}
    staying = [member for member in group.members.values() if member.member_id not in gone]
    return bool(staying) and _can_be_classic(staying, settings)


def can_downgrade_by_replacement(
    group: ConsumerGroup, replaced: ConsumerMember, settings: GroupSettings
) -> bool:
    """Whether the group becomes a classic one when a member of the classic protocol takes the
    place of this one."""
    others = [each for each in group.members.values() if each.member_id != replaced.member_id]
    return (
        replaced.classic is None
        and len(group.members) <= settings.group_max_size
        and _can_be_classic(others, settings)
    )


def _can_be_classic(members: Collection[ConsumerMember], settings: GroupSettings) -> bool:
    return (
        settings.group_consumer_migration_policy in DOWNGRADE_POLICIES
        and len(members) <= settings.group_max_size
        and all(member.classic is not None for member in members)
    )


def downgraded_members(
    group: ConsumerGroup, staying: Collection[ConsumerMember], topics: Topics
) -> list[ClassicMember]:
    """The members of the classic group, each with what its target gives to it."""
    members = []
    for member in staying:
        assert member.classic is not None, f"{member.member_id} speaks the consumer protocol"
        members.append(
            ClassicMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocols=member.classic.protocols,
            )
        )
    protocol = select_protocol(members)
    return [
        replace(
            member,
            assignment=encoded_assignment(target, topics, for_metadata=member.metadata(protocol)),
        )
        for member, target in zip(members, map(group.target_of, staying), strict=True)
    ]


def downgrade_records(
    group: ConsumerGroup,
    members: list[ClassicMember],
    now_ms: int,
    *,
    member_ids: Collection[str],
) -> list[CoordinatorRecord]:
    """The records that make a classic group of a consumer group; its epoch becomes the generation.

    Args:
        members: the members of the classic group; not empty.
        member_ids: of all members that the consumer group has had.
    """
    classic = ClassicGroup(group.group_id, protocol_type=CONSUMER_PROTOCOL_TYPE)
    return [
        *group.tombstones_of(member_ids),
        classic.record(
            members,
            generation=group.group_epoch,
            protocol=select_protocol(members),
            leader=members[0].member_id,
            timestamp=now_ms,
        ),
    ]

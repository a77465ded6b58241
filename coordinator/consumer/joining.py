"""Who sends a request: a member of the group, somebody new, or a static member that is back."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ConsumerMember
from klamm.coordinator.consumer.reconciliation import OwnedPartitions
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.errors import ErrorCode


def new_member_id(new_uuid: Callable[[], UUID]) -> str:
    """The way in which Kafka writes ids: 22 characters, the first of which is no dash, because
    command lines would take it for an option."""
    while True:
        member_id = urlsafe_b64encode(new_uuid().bytes).decode().rstrip("=")
        if not member_id.startswith("-"):
            return member_id


def check_room(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """
    Raises:
        CoordinatorError: GROUP_MAX_SIZE_REACHED.
    """
    if len(group.members) >= size_max and member_id not in group.members:
        raise CoordinatorError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: OwnedPartitions) -> None:
    """An epoch behind is fine if the member cannot have heard of the next one, because the answer
    was lost, and has nothing that was taken from it since.

    Raises:
        CoordinatorError: FENCED_MEMBER_EPOCH.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch == member.previous_member_epoch < member.member_epoch and _has_only_assigned(
        member, owned
    ):
        return
    comparison = "greater" if epoch > member.member_epoch else "smaller"
    raise CoordinatorError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {comparison} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.member_epoch}). The member must abandon all its "
        "partitions and rejoin.",
    )


def _has_only_assigned(member: ConsumerMember, owned: OwnedPartitions) -> bool:
    if owned is None:
        return False
    return all(
        topic in member.assigned and partitions <= member.assigned[topic].keys()
        for topic, partitions in owned.items()
    )


def find_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The owner of an instance id, which must have this member id.

    Raises:
        CoordinatorError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    member = known_static_member(group, instance_id)
    if member.member_id != member_id:
        raise CoordinatorError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def known_static_member(group: ConsumerGroup, instance_id: str) -> ConsumerMember:
    """
    Raises:
        CoordinatorError: UNKNOWN_MEMBER_ID.
    """
    member = group.static_member(instance_id)
    if member is None:
        raise CoordinatorError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown."
        )
    return member


def join_static_member(
    group: ConsumerGroup,
    instance_id: str,
    member_id: str,
    written: list[CoordinatorRecord],
    *,
    is_classic: bool,
) -> ConsumerMember:
    """The new owner of an instance id, with all that the one before had.

    Between members of the consumer protocol, the one before must have left for a while.

    Raises:
        CoordinatorError: UNRELEASED_INSTANCE_ID.
    """
    before = group.static_member(instance_id)
    if before is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    is_away = before.member_epoch == LEAVE_STATIC_EPOCH
    if not is_away and not is_classic and before.classic is None:
        raise CoordinatorError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {before.member_id} member.",
        )
    member = replace(before, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    written += records.member_tombstones(group_id, before.member_id)
    written += [
        records.subscription_record(group_id, member),
        records.target_record(group_id, member_id, group.target_of(before)),
        records.current_assignment_record(group_id, member),
    ]
    return member

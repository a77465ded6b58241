"""One step of a member towards its target: a pure function.

| state of the member   | and                                  | next                              |
|-----------------------|--------------------------------------|-----------------------------------|
| Stable                | the target is of its epoch           | as it is; if its subscription has |
|                       |                                      | changed, without topics that it   |
|                       |                                      | no longer subscribes to           |
| Stable                | the target is of another epoch       | towards the target                |
| UnrevokedPartitions   | still owns what it must give up      | as for Stable at its epoch        |
| UnrevokedPartitions   | has given up all of it               | towards the target                |
| UnreleasedPartitions  |                                      | towards the target                |
| Unknown               | owns nothing                         | towards the target                |
| Unknown               | may own something                    | fenced                            |

Towards the target, what is assigned but not in the target has to be given up first. If the member
still owns some of it, it is UnrevokedPartitions and keeps its epoch. If not, it arrives at the
epoch of the target and gets what is free: all of it, and it is Stable, or a part, and it is
UnreleasedPartitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

from klamm.coordinator.consumer.member import ConsumerMember, Partitions
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode

# What a member says that it owns; None if it does not say, because nothing has changed.
OwnedPartitions: TypeAlias = Mapping[UUID, frozenset[int]] | None


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go.

    Args:
        subscribed_topic_ids: of the topics that exist.
        has_subscription_changed: with this very request.
        has_owner: whether a member, perhaps this one, has a partition or has not given it up.
    """

    epoch: int
    target: Mapping[UUID, frozenset[int]]
    subscribed_topic_ids: Collection[UUID]
    has_subscription_changed: bool
    has_owner: Callable[[UUID, int], bool]


def reconcile(member: ConsumerMember, goal: Goal, owned: OwnedPartitions) -> ConsumerMember:
    """
    Raises:
        CoordinatorError: FENCED_MEMBER_EPOCH, because its state is unknown.
    """
    match member.state:
        case MemberState.STABLE if member.member_epoch == goal.epoch:
            return _without_unsubscribed(member, goal, owned)
        case MemberState.UNREVOKED_PARTITIONS if _owns(member.pending_revocation, owned):
            return _without_unsubscribed(member, goal, owned)
        case MemberState.UNKNOWN if owned is None or owned:
            raise CoordinatorError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        case MemberState.UNKNOWN:
            return _towards_target(member, goal, owned, goal.epoch)
        case _:
            return _towards_target(member, goal, owned, member.member_epoch)


def _owns(partitions: Partitions, owned: OwnedPartitions) -> bool:
    """Whether the member still owns one of the partitions; it does if it has not said otherwise."""
    if owned is None:
        return True
    return any(not owned[topic].isdisjoint(partitions.get(topic, ())) for topic in owned)


def _without_unsubscribed(
    member: ConsumerMember, goal: Goal, owned: OwnedPartitions
) -> ConsumerMember:
    """Take away topics at once that the member itself no longer wants."""
    if not goal.has_subscription_changed:
        return member
    kept: dict[UUID, Mapping[int, int]] = {}
    revoked = dict(member.pending_revocation)
    for topic, epochs in member.assigned.items():
        if topic in goal.subscribed_topic_ids:
            kept[topic] = epochs
        else:
            revoked[topic] = {**revoked.get(topic, {}), **epochs}
    if len(kept) == len(member.assigned):
        return member
    changed = replace(member, previous_member_epoch=member.member_epoch, assigned=kept)
    if not _owns(revoked, owned):
        return changed
    return replace(changed, state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=revoked)


def _towards_target(
    member: ConsumerMember, goal: Goal, owned: OwnedPartitions, epoch: int
) -> ConsumerMember:
    assigned: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    free: dict[UUID, list[int]] = {}
    has_unreleased = False
    for topic in {**goal.target, **member.assigned}:
        target = goal.target.get(topic, frozenset())
        if topic not in goal.subscribed_topic_ids:
            target = frozenset()
        current = member.assigned.get(topic, {})
        if kept := {partition: current[partition] for partition in current if partition in target}:
            assigned[topic] = kept
        if gone := {
            partition: current[partition] for partition in current if partition not in kept
        }:
            revoked[topic] = gone
        # What the member itself had to give up until now is free for it.
        own = member.pending_revocation.get(topic, ())
        for partition in target.difference(current):
            if partition in own or not goal.has_owner(topic, partition):
                free.setdefault(topic, []).append(partition)
            else:
                has_unreleased = True
    if revoked and _owns(revoked, owned):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned=assigned,
            pending_revocation=revoked,
        )
    for topic, partitions in free.items():
        assigned.setdefault(topic, {}).update(dict.fromkeys(partitions, goal.epoch))
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE,
        member_epoch=goal.epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation={},
    )

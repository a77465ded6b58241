"""The `uniform` assignor when all members subscribe to the same topics.

Two members differ by at most one partition, and no assignment that is as balanced moves fewer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from uuid import UUID

from klamm.coordinator.assignor.spec import Assignment, MemberSpec


def assign_homogeneous(
    members: Mapping[str, MemberSpec], counts: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """The target assignment of each member.

    Args:
        members: in the order in which they get new partitions.
        counts: how many partitions each topic has.
    """
    unowned = {topic: set(range(count)) for topic, count in counts.items()}
    target = {member_id: _claim(member.assigned, unowned) for member_id, member in members.items()}
    sizes = [sum(map(len, assignment.values())) for assignment in target.values()]
    quotas = _quotas(sizes, sum(counts.values()))

    unassigned = [(topic, partition) for topic in unowned for partition in sorted(unowned[topic])]
    for assignment, size, quota in zip(target.values(), sizes, quotas, strict=True):
        if size > quota:
            ordered = [(topic, n) for topic in counts for n in sorted(assignment.get(topic, ()))]
            assignment.clear()
            _add(assignment, ordered[:quota])
            unassigned += ordered[quota:]

    remaining = iter(unassigned)
    for assignment, size, quota in zip(target.values(), sizes, quotas, strict=True):
        if size < quota:
            _add(assignment, islice(remaining, quota - size))
    return target


def _claim(assigned: Mapping[UUID, frozenset[int]], unowned: Mapping[UUID, set[int]]) -> Assignment:
    """What a member may keep of what it had; it is no longer unowned then."""
    claimed: Assignment = {}
    for topic, partitions in assigned.items():
        if topic in unowned and (kept := partitions & unowned[topic]):
            claimed[topic] = kept
            unowned[topic] -= kept
    return claimed


def _quotas(sizes: Sequence[int], total: int) -> list[int]:
    """How many partitions each member gets, from how many it has.

    What does not divide evenly goes to members that have more than the others already, so that it
    does not move, and else to the last ones.
    """
    quota, extra = divmod(total, len(sizes))
    quotas = []
    for members_left, size in zip(range(len(sizes), 0, -1), sizes, strict=True):
        gets_extra = extra > 0 and (size > quota or members_left <= extra)
        quotas.append(quota + gets_extra)
        extra -= gets_extra
    return quotas


def _add(assignment: Assignment, partitions: Iterable[tuple[UUID, int]]) -> None:
    added = defaultdict[UUID, list[int]](list)
    for topic, partition in partitions:
        added[topic].append(partition)
    for topic, numbers in added.items():
        assignment[topic] = assignment.get(topic, frozenset()).union(numbers)

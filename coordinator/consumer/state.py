"""The states of a consumer group and of its members, and which may follow which.

The rules of a group:

1. A group without members is Empty. It stays for as long as it has offsets.
2. The group epoch grows whenever the target assignment may have to change: somebody comes, leaves
   or subscribes to other topics, or a topic that is subscribed to changes. While no target exists
   for this epoch, the group is Assigning. The next heartbeat computes one, but not sooner than
   `group.consumer.assignment.interval.ms` after the last.
3. The target is as old as the group epoch, but a member has not arrived there: Reconciling.
4. All members have arrived: Stable.
5. Dead is a group that was deleted or became a classic one. It comes last, and nobody sees it.

Nothing sets the state of a group: it follows from what the log holds. Members move on their own,
one heartbeat at a time, and never wait for each other except for single partitions.

The rules of a member:

1. Stable: it has what the target of its epoch gives to it.
2. UnrevokedPartitions: it must give up partitions first, and keeps its epoch until it reports that
   it no longer owns them. If this takes longer than its rebalance timeout, it is removed.
3. UnreleasedPartitions: it has arrived at the epoch of the target, but some of its partitions still
   belong to others. It gets them, heartbeat by heartbeat, as they are given up.
4. Unknown: a newer broker stored a state that this one does not know. The member is fenced, and
   begins again without partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum


class ConsumerGroupState(Enum):
    """The value is the name in ListGroups and ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


PREDECESSORS: Mapping[ConsumerGroupState, frozenset[ConsumerGroupState]] = {
    ConsumerGroupState.EMPTY: frozenset(
        {
            ConsumerGroupState.ASSIGNING,
            ConsumerGroupState.RECONCILING,
            ConsumerGroupState.STABLE,
        }
    ),
    ConsumerGroupState.ASSIGNING: frozenset(
        {ConsumerGroupState.EMPTY, ConsumerGroupState.RECONCILING, ConsumerGroupState.STABLE}
    ),
    ConsumerGroupState.RECONCILING: frozenset(
        {ConsumerGroupState.EMPTY, ConsumerGroupState.ASSIGNING, ConsumerGroupState.STABLE}
    ),
    ConsumerGroupState.STABLE: frozenset(
        {ConsumerGroupState.EMPTY, ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING}
    ),
    ConsumerGroupState.DEAD: frozenset(ConsumerGroupState),
}


class MemberState(IntEnum):
    """The value is the number in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


MEMBER_PREDECESSORS: Mapping[MemberState, frozenset[MemberState]] = {
    MemberState.STABLE: frozenset(
        {
            MemberState.UNREVOKED_PARTITIONS,
            MemberState.UNRELEASED_PARTITIONS,
            MemberState.UNKNOWN,
        }
    ),
    MemberState.UNREVOKED_PARTITIONS: frozenset(
        {MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS}
    ),
    MemberState.UNRELEASED_PARTITIONS: frozenset(
        {MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNKNOWN}
    ),
    MemberState.UNKNOWN: frozenset(),
}

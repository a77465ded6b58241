"""The states of a classic group, and which may follow which.

The rules:

1. A group without members is Empty. It stays for as long as it has offsets, and for groups that
   only store offsets this is the one state they ever have.
2. Whenever the set of members or what one of them can do changes, the group is in
   PreparingRebalance: JoinGroup requests are parked until every known member has joined again or
   the longest rebalance timeout of the members is over. An Empty group waits for
   `group.initial.rebalance.delay.ms` instead.
3. Then the parked requests are answered with a new generation, and the group is in
   CompletingRebalance: SyncGroup requests are parked until the leader's arrives with everybody's
   assignment. If nobody is left, the group is Empty.
4. The leader's assignment makes it Stable. Only now, and when it becomes Empty, is the group
   written to the log: a restart in the middle of a rebalance finds the generation before.
5. Dead is a group that this broker no longer serves. It comes last, from everywhere.

What is in the log is therefore always Stable or Empty, and `replay` leads to no other state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ClassicState(Enum):
    """The value is the name in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


PREDECESSORS: Mapping[ClassicState, frozenset[ClassicState]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.EMPTY, ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.STABLE: frozenset({ClassicState.COMPLETING_REBALANCE}),
    ClassicState.DEAD: frozenset(ClassicState),
}

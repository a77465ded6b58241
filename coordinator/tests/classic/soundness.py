"""What holds for a classic group at any time, whatever has happened to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.classic.state import PREDECESSORS, ClassicState
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.messages.stored.classic_group import GroupMetadataKey, GroupMetadataValue


def check_group(group: ClassicGroup) -> None:
    """Whoever waits or is waited for is a member, and every instance id has one owner."""
    statics = [member for member in group.members.values() if member.is_static]
    assert group.static_members == {one.group_instance_id: one.member_id for one in statics}
    assert len(group.static_members) == len(statics)
    assert group.leader in group.members if group.members else group.leader is None
    assert group.join_replies.keys() <= group.members.keys()
    assert group.sync_replies.keys() <= group.members.keys()
    assert group.new_members <= group.join_replies.keys()
    assert group.pending_sync_members <= group.members.keys()
    assert not group.pending_members & group.members.keys()
    assert not group.join_replies or group.state is ClassicState.PREPARING_REBALANCE
    assert not group.sync_replies or group.state is ClassicState.COMPLETING_REBALANCE


def needed_timers(group: ClassicGroup) -> set[Hashable]:
    """Without these, somebody could stay or wait for ever."""
    needed: set[Hashable] = {
        ("classic-session", group.group_id, member_id)
        for member_id in (*group.members, *group.pending_members)
        if not group.is_parked(member_id)
    }
    if group.state is ClassicState.PREPARING_REBALANCE:
        needed.add(("classic-join", group.group_id))
    if group.pending_sync_members:
        needed.add(("classic-sync", group.group_id))
    return needed


def allowed_timers(group: ClassicGroup) -> set[Hashable]:
    """More than these are left over. The session of a member that waits may have run out."""
    return needed_timers(group) | {
        ("classic-session", group.group_id, member_id) for member_id in group.members
    }


def is_reachable(before: ClassicState, after: ClassicState) -> bool:
    """Whether the state can follow in one step, which may be two transitions."""
    first = PREDECESSORS[after]
    return before is after or before in first or any(before in PREDECESSORS[one] for one in first)


def stored_state(group: ClassicGroup) -> CoordinatorRecord:
    """Everything of the group that the log has to hold while it is Stable or Empty."""
    return group.record(
        group.members.values(),
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        timestamp=group.current_state_timestamp,
    )


def replay_into(protocol: ClassicProtocol) -> Callable[[CoordinatorRecord], None]:
    def replay(record: CoordinatorRecord) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        assert record.value is None or isinstance(record.value, GroupMetadataValue)
        protocol.replay_group_metadata(record.key, record.value)

    return replay

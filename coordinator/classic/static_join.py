"""JoinGroup of a static member that comes back without its member id (KIP-345).

It gets a new id, and its place: in a Stable group whose protocol stays the same nobody else
notices, and the member finds its assignment as it was.
"""

from __future__ import annotations

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.classic.membership import select_protocol
from klamm.coordinator.classic.rebalance import Rebalances
from klamm.coordinator.classic.replies import (
    NO_MEMBER_ID,
    append_error_code,
    join_refused,
    joined,
    sync_refused,
)
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client, Reply
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

# From this version on, a leader that comes back can be told not to assign (KIP-814).
SKIP_ASSIGNMENT_VERSION = 9


class StaticJoins:
    def __init__(self, shard: Shard, rebalances: Rebalances) -> None:
        self._shard = shard
        self._rebalances = rebalances

    def replace(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        member_id: str,
        reply: Reply[JoinGroupResponse],
    ) -> JoinGroupResponse | None:
        """Put the member with its new id in the place of the one that has the instance id."""
        assert request.group_instance_id is not None
        before = group.members[group.static_members[request.group_instance_id]]
        member = before.joining_again(request, client, member_id)
        members = [member if one is before else one for one in group.members.values()]
        if group.state is ClassicState.STABLE and select_protocol(members) == group.protocol:
            return self._replace_quietly(group, before, member, members, client.api_version)
        leader = member_id if group.leader == before.member_id else group.leader
        self._swap(group, before, member, members, leader)
        group.join_replies[member_id] = reply
        self._rebalances.prepare_or_complete(group)
        return None

    def _replace_quietly(
        self,
        group: ClassicGroup,
        before: ClassicMember,
        member: ClassicMember,
        members: list[ClassicMember],
        api_version: int,
    ) -> JoinGroupResponse:
        """Store the new id without a rebalance; the member's protocols do not change the vote."""
        leader_before = group.leader
        assert leader_before is not None, f"{group.group_id}: members, but no leader"
        is_leader = leader_before == before.member_id
        leader = member.member_id if is_leader else leader_before
        record = group.record(
            members,
            generation=group.generation,
            protocol=group.protocol,
            leader=leader,
            timestamp=group.current_state_timestamp,
        )
        try:
            self._shard.journal.append([record])
        except CoordinatorError as error:
            refusal = joined(group, NO_MEMBER_ID, with_members=False)
            refusal.error_code = append_error_code(error)
            return refusal
        self._swap(group, before, member, members, leader)
        if api_version >= SKIP_ASSIGNMENT_VERSION:
            return joined(
                group, member.member_id, with_members=is_leader, skip_assignment=is_leader
            )
        # An old client that is told that it leads would assign: it is shown the id that it had.
        response = joined(group, member.member_id, with_members=False)
        response.leader = leader_before
        return response

    def _swap(
        self,
        group: ClassicGroup,
        before: ClassicMember,
        member: ClassicMember,
        members: list[ClassicMember],
        leader: str | None,
    ) -> None:
        """Fence the member before: it may still be there, waiting for an answer."""
        group.set_members(members, leader)
        self._rebalances.restart_session(group, member.member_id)
        if before.member_id in group.pending_sync_members:
            group.pending_sync_members.add(member.member_id)
        join_reply = group.join_replies.pop(before.member_id, None)
        sync_reply = group.sync_replies.pop(before.member_id, None)
        self._rebalances.drop(group, before.member_id)
        if join_reply is not None:
            join_reply(join_refused(ErrorCode.FENCED_INSTANCE_ID, before.member_id))
        if sync_reply is not None:
            sync_reply(sync_refused(ErrorCode.FENCED_INSTANCE_ID))

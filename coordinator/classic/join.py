"""JoinGroup: how a client becomes a member, and how a member takes part in a rebalance."""

from __future__ import annotations

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.member import ClassicMember, names_of
from klamm.coordinator.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalances
from klamm.coordinator.classic.replies import (
    append_error_code,
    join_refused,
    joined,
)
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.classic.static_join import StaticJoins
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client, CoordinatorRecord, Reply
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

# From this version on, a dynamic member gets its id before it joins (KIP-394).
KNOWN_MEMBER_ID_VERSION = 4


class Joins:
    """The JoinGroup requests to classic groups, and to groups that do not exist yet.

    The methods give the response, or None when the reply is parked.
    """

    def __init__(self, shard: Shard, rebalances: Rebalances) -> None:
        self._shard = shard
        self._rebalances = rebalances
        self._static = StaticJoins(shard, rebalances)

    def join(
        self, request: JoinGroupRequest, client: Client, reply: Reply[JoinGroupResponse]
    ) -> None:
        response = self._join(request, client, reply)
        if response is not None:
            reply(response)

    def _join(
        self, request: JoinGroupRequest, client: Client, reply: Reply[JoinGroupResponse]
    ) -> JoinGroupResponse | None:
        member_id, settings = request.member_id, self._shard.settings
        if not request.group_id:
            return join_refused(ErrorCode.INVALID_GROUP_ID, member_id)
        if not (
            settings.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.group_max_session_timeout_ms
        ):
            return join_refused(ErrorCode.INVALID_SESSION_TIMEOUT, member_id)
        group = self._rebalances.find(request.group_id)
        if group is None:
            if member_id:
                return join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
            try:
                group = self._create_group(request.group_id)
            except CoordinatorError as error:
                return join_refused(append_error_code(error))
        if not self._has_room(group, member_id):
            self._rebalances.drop(group, member_id)
            return join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if group.state is ClassicState.DEAD:
            return join_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        names = names_of([protocol.name for protocol in request.protocols])
        if not group.supports_protocols(request.protocol_type, names):
            return join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        if not member_id:
            return self._join_without_id(group, request, client, reply)
        if member_id in group.pending_members:
            return self._join_pending(group, request, client, reply)
        return self._join_again(group, request, client, reply)

    def _create_group(self, group_id: str) -> ClassicGroup:
        """Store an Empty group, in place of another kind of group if there is an empty one."""
        records: list[CoordinatorRecord] = []
        other = self._shard.groups.get(group_id)
        if other is not None:
            if not other.is_empty:
                raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            records.extend(other.tombstones())
        now_ms = self._shard.now_ms()
        records.append(
            ClassicGroup(group_id).record(
                (), generation=0, protocol=None, leader=None, timestamp=now_ms
            )
        )
        self._shard.journal.append(records)
        group = self._rebalances.find(group_id)
        assert group is not None, f"{group_id}: the journal has not replayed the group"
        return group

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether `group.max.size` lets this member in.

        While members come back, those are counted that have: the last ones are out when the limit
        was lowered meanwhile.
        """
        size_max = self._shard.settings.group_max_size
        if group.state is ClassicState.PREPARING_REBALANCE:
            return member_id in group.join_replies or len(group.join_replies) < size_max
        if group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            return member_id in group.members or len(group.members) < size_max
        return True

    def _join_without_id(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        reply: Reply[JoinGroupResponse],
    ) -> JoinGroupResponse | None:
        name = request.group_instance_id
        if name is None:
            name = client.client_id
        member_id = f"{name}-{self._shard.new_uuid()}"
        if request.group_instance_id is not None:
            if request.group_instance_id in group.static_members:
                return self._static.replace(group, request, client, member_id, reply)
        elif client.api_version >= KNOWN_MEMBER_ID_VERSION:
            self._rebalances.await_pending(group, member_id, request.session_timeout_ms)
            return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        self._add_member(group, request, client, member_id, reply)
        return None

    def _join_pending(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        reply: Reply[JoinGroupResponse],
    ) -> JoinGroupResponse | None:
        if request.group_instance_id is not None:
            # Only dynamic members are made to wait for their id.
            return join_refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._add_member(group, request, client, request.member_id, reply)
        return None

    def _add_member(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        member_id: str,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        if not group.members:
            group.protocol_type = request.protocol_type
        group.pending_members.discard(member_id)
        group.put_member(ClassicMember.joining(request, client, member_id))
        group.new_members.add(member_id)
        group.new_member_added = group.is_initial_rebalance
        group.join_replies[member_id] = reply
        self._rebalances.restart_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalances.prepare_or_complete(group)

    def _join_again(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        reply: Reply[JoinGroupResponse],
    ) -> JoinGroupResponse | None:
        member_id = request.member_id
        try:
            group.check_member(member_id, request.group_instance_id)
        except CoordinatorError as error:
            return join_refused(error.code, member_id)
        member = group.members[member_id].joining_again(request, client)
        is_leader = member_id == group.leader
        is_same = member.protocols == group.members[member_id].protocols
        if is_same and group.state is ClassicState.COMPLETING_REBALANCE:
            # It may have missed the answer to its first request.
            return joined(group, member_id, with_members=is_leader)
        if is_same and group.state is ClassicState.STABLE and not is_leader:
            return joined(group, member_id, with_members=False)
        # The leader of a Stable group joins to assign anew, because topics have changed.
        group.put_member(member)
        before = group.join_replies.get(member_id)
        group.join_replies[member_id] = reply
        self._rebalances.prepare_or_complete(group)
        if before is not None:
            # One request of a member can wait; Kafka never answers the one before.
            before(join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member_id))
        return None

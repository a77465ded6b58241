"""SyncGroup: the leader gives the assignments, everybody gets their own."""

from __future__ import annotations

from dataclasses import replace

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.rebalance import Rebalances
from klamm.coordinator.classic.replies import append_error_code, sync_refused, synced
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client, Reply
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# From this version on, the request has to say which protocol it is about.
PROTOCOL_VERSION = 5


class Syncs:
    """The SyncGroup requests to classic groups."""

    def __init__(self, shard: Shard, rebalances: Rebalances) -> None:
        self._shard = shard
        self._rebalances = rebalances

    def sync(
        self, request: SyncGroupRequest, client: Client, reply: Reply[SyncGroupResponse]
    ) -> None:
        """Answer at once, or park the reply until the leader has sent its assignments."""
        try:
            group = self._checked_group(request, client)
        except CoordinatorError as error:
            reply(sync_refused(error.code))
            return
        if group.state is ClassicState.STABLE:
            self._rebalances.received_sync(group, request.member_id)
            reply(synced(group, request.member_id))
        elif request.member_id == group.leader:
            self._assign(group, request, reply)
        else:
            self._park(group, request.member_id, reply)

    def _checked_group(self, request: SyncGroupRequest, client: Client) -> ClassicGroup:
        """The group, which is Stable or about to be.

        Raises:
            CoordinatorError: the request is refused.
        """
        has_protocol = request.protocol_type is not None and request.protocol_name is not None
        if client.api_version >= PROTOCOL_VERSION and not has_protocol:
            raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.group_id:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        group = self._rebalances.find(request.group_id)
        if group is None or group.is_empty:
            raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is ClassicState.DEAD:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise CoordinatorError(ErrorCode.ILLEGAL_GENERATION)
        if request.protocol_type not in (None, group.protocol_type) or (
            group.protocol is not None and request.protocol_name not in (None, group.protocol)
        ):
            raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise CoordinatorError(ErrorCode.REBALANCE_IN_PROGRESS)
        return group

    def _park(self, group: ClassicGroup, member_id: str, reply: Reply[SyncGroupResponse]) -> None:
        before = group.sync_replies.get(member_id)
        group.sync_replies[member_id] = reply
        self._rebalances.received_sync(group, member_id)
        if before is not None:
            # One request of a member can wait; Kafka never answers the one before.
            before(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]
    ) -> None:
        """Store what the leader has assigned; this makes the group Stable.

        Whom the leader has left out gets an empty assignment; whoever is no member gets none. If
        the log refuses, everybody is told so and has to join again, as in Kafka.
        """
        assignments = {given.member_id: given.assignment for given in request.assignments}
        members = [
            replace(member, assignment=assignments.get(member.member_id, b""))
            for member in group.members.values()
        ]
        record = group.record(
            members,
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            timestamp=self._shard.now_ms(),
        )
        refusal = None
        try:
            self._shard.journal.append([record])
        except CoordinatorError as error:
            refusal = append_error_code(error)
        self._park(group, request.member_id, reply)
        if refusal is None:
            self._rebalances.accept_sync(group)
        else:
            self._rebalances.reject_sync(group, refusal)
            self._rebalances.prepare(group)

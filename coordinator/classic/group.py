"""A classic group: its members and its generation, and who waits for what.

What the log holds of a group is the state Empty or Stable, the generation and the members with
their assignments. `replay` alone brings a group there. What happens between two of these points is
soft: a restart forgets it, and the clients join again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.classic.membership import Membership, select_protocol
from klamm.coordinator.classic.state import PREDECESSORS, ClassicState
from klamm.coordinator.classic.subscription import CONSUMER_PROTOCOL_TYPE, topics_of
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord, Reply
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_groups import DescribedGroup
from klamm.wire.messages.join_group import JoinGroupResponse
from klamm.wire.messages.stored.classic_group import GroupMetadataKey, GroupMetadataValue
from klamm.wire.messages.sync_group import SyncGroupResponse

VALUE_VERSION = 3
NO_TIMESTAMP = -1


@dataclass(slots=True)
class ClassicGroup(Membership):
    """
    Args:
        current_state_timestamp: wall time at which the state was entered; None if the record is
            of a version that did not say.
        protocol_type: "consumer", "connect", ...; empty before the first member.
        protocol: the assignor of this generation; None without one.
        subscribed_topics: None while it is not known: the members are no consumers, or their
            metadata cannot be read, or there was no generation yet.
        pending_members: ids that were handed out with MEMBER_ID_REQUIRED and have not joined.
        new_members: members that wait for the answer to their first JoinGroup; only these may
            expire while they wait.
        join_replies: who waits for the join phase to end.
        pending_sync_members: who has not yet sent SyncGroup in this generation.
        sync_replies: who waits for the assignment of the leader.
        is_initial_rebalance: the rebalance began in an Empty group, and ends by its timer alone.
        new_member_added: somebody joined since the timer of the initial rebalance was set.
    """

    TYPE: ClassVar[str] = "classic"

    state: ClassicState = ClassicState.EMPTY
    current_state_timestamp: int | None = None
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    subscribed_topics: frozenset[str] | None = None
    pending_members: set[str] = field(default_factory=set)
    new_members: set[str] = field(default_factory=set)
    join_replies: dict[str, Reply[JoinGroupResponse]] = field(default_factory=dict)
    pending_sync_members: set[str] = field(default_factory=set)
    sync_replies: dict[str, Reply[SyncGroupResponse]] = field(default_factory=dict)
    is_initial_rebalance: bool = False
    new_member_added: bool = False

    # What the parts that serve all kinds of groups ask: see coordinator/group.py.

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """The state is Empty; ids that are only pending do not count, as in Kafka."""
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """While consumers do not say which topics they read, they may read any."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> None:
        if self.state is ClassicState.DEAD:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_or_epoch < 0 and self.is_empty:
            # An admin client, or a consumer that chooses its partitions itself.
            return
        if generation_or_epoch >= 0 or member_id or group_instance_id is not None:
            self.check_member(member_id, group_instance_id)
            if generation_or_epoch != self.generation:
                raise CoordinatorError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional and not self.is_empty:
            # TxnOffsetCommit had neither member id nor generation before version 3.
            raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise CoordinatorError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_alive()

    def check_offset_delete(self) -> None:
        self._check_alive()
        if not self.is_empty and not self.uses_consumer_protocol:
            raise CoordinatorError(ErrorCode.NON_EMPTY_GROUP)

    def check_deletion(self) -> None:
        self._check_alive()
        if not self.is_empty:
            raise CoordinatorError(ErrorCode.NON_EMPTY_GROUP)

    def _check_alive(self) -> None:
        if self.state is ClassicState.DEAD:
            message = f"Group {self.group_id} is in dead state."
            raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def offsets_expire_after_ms(self, retention_ms: int) -> Callable[[int], int] | None:
        def by_commit(commit_timestamp: int) -> int:
            return commit_timestamp + retention_ms

        if not self.protocol_type:
            # Nobody was ever a member: the group only stores offsets.
            return by_commit
        if self.is_empty:
            empty_since = self.current_state_timestamp
            if empty_since is None:
                return by_commit
            return lambda commit_timestamp: empty_since + retention_ms
        if (
            self.state is ClassicState.STABLE
            and self.uses_consumer_protocol
            and self.subscribed_topics is not None
        ):
            return by_commit
        return None

    def describe(self) -> DescribedGroup:
        """The group for DescribeGroups; protocol and metadata are shown while it is Stable."""
        protocol = self.protocol if self.state is ClassicState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type,
            protocol_data=protocol or "",
            members=[member.described(protocol) for member in self.members.values()],
        )

    # The log.

    def record(
        self,
        members: Collection[ClassicMember],
        *,
        generation: int,
        protocol: str | None,
        leader: str | None,
        timestamp: int | None,
    ) -> CoordinatorRecord:
        """The record that makes the group Stable with these members, or Empty without any."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=generation,
            protocol=protocol,
            leader=leader,
            current_state_timestamp=NO_TIMESTAMP if timestamp is None else timestamp,
            members=[member.stored(protocol) for member in members],
        )
        return CoordinatorRecord(GroupMetadataKey(group=self.group_id), value, VALUE_VERSION)

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    def replay(self, value: GroupMetadataValue) -> None:
        """Become what the record says; who waits goes on waiting."""
        members = [
            ClassicMember.from_stored(stored, value, self.members.get(stored.member_id))
            for stored in value.members
        ]
        self.state = ClassicState.STABLE if members else ClassicState.EMPTY
        timestamp = value.current_state_timestamp
        self.current_state_timestamp = None if timestamp == NO_TIMESTAMP else timestamp
        self.generation = value.generation
        self.protocol_type = value.protocol_type
        self.protocol = value.protocol
        self.set_members(members, value.leader)
        self.subscribed_topics = self._find_subscribed_topics()
        self.is_initial_rebalance = False

    # Soft state.

    def transition_to(self, state: ClassicState, now_ms: int) -> None:
        assert self.state in PREDECESSORS[state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.current_state_timestamp = now_ms

    def begin_generation(self, now_ms: int) -> None:
        """The join phase is over, and there are members."""
        self.generation += 1
        self.protocol = select_protocol(self.members.values())
        self.subscribed_topics = self._find_subscribed_topics()
        self.is_initial_rebalance = False
        self.transition_to(ClassicState.COMPLETING_REBALANCE, now_ms)
        self.pending_sync_members = set(self.members)

    def supports_protocols(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Whether a member with these protocols can join."""
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and self.has_common_protocol(protocols)

    @property
    def has_all_joined(self) -> bool:
        return len(self.join_replies) == len(self.members) and not self.pending_members

    def is_parked(self, member_id: str) -> bool:
        """Whether the member waits for an answer, and so is not expected to send heartbeats. This
        does not hold for one that has never had an answer: nothing else would ever end its wait."""
        if member_id in self.new_members:
            return False
        return member_id in self.join_replies or member_id in self.sync_replies

    def clear_assignments(self) -> None:
        for member_id, member in self.members.items():
            self.members[member_id] = replace(member, assignment=b"")

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        return topics_of(member.metadata(self.protocol) for member in self.members.values())

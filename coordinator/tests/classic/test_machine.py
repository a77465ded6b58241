"""The classic protocol under arbitrary requests, time and refusals of the log.

After every step: what the log holds, replayed from nothing, is what the live group is; a refused
append has left no trace; everybody in a generation was told the same and got what the leader gave
them. In the end, when time goes on, nobody is left waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.ports import Client
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.classic.script import consumer_metadata
from klamm.coordinator.tests.classic.soundness import (
    allowed_timers,
    check_group,
    is_reachable,
    needed_timers,
    replay_into,
    stored_state,
)
from klamm.coordinator.tests.fakes import FakeShard
from klamm.wire.codec import encode
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUPS = st.sampled_from(["g", "g", "g", "h"])
INSTANCES = st.sampled_from([None, None, "i", "j"])
BOTH, TWICE, OTHER = ["range", "sticky"], ["range", "range", "sticky"], ["other"]
PROTOCOLS = st.sampled_from([BOTH, BOTH, BOTH, ["sticky", "range"], ["range"], TWICE, OTHER, []])
SESSIONS = st.sampled_from([6_000, 10_000, 45_000])
TIMEOUTS = st.sampled_from([-1, 0, 5_000, 60_000, 400_000])
# Which of the members that there are; high numbers are clients that the group may not know.
WHO = st.integers(0, 9)
# Longer than any session, rebalance, retry and join timeout.
LONG_MS = 1_000_000


@dataclass(frozen=True)
class Told:
    """What a client knows of itself after a JoinGroup."""

    member_id: str
    generation: int
    instance_id: str | None
    # Of a leader: the members that it has to assign to.
    members: tuple[str, ...] = ()


class ClassicMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, dict[str, Told]] = defaultdict(dict)
        self.waiting: dict[int, str] = {}
        self.replies: dict[int, tuple[str, Any]] = {}
        self.requests = 0
        # What generations of a group were told: the protocol, and who got what by member.
        self.protocols: dict[tuple[str, int, int], str | None] = {}
        self.assigned: dict[tuple[str, int, int, str], bytes] = {}
        self.lives: dict[str, int] = defaultdict(int)

    @initialize(
        delay_ms=st.sampled_from([0, 0, 3_000]),
        size_max=st.sampled_from([2, 100, 100]),
        instances=st.lists(INSTANCES, max_size=4),
    )
    def start(self, delay_ms: int, size_max: int, instances: list[str | None]) -> None:
        """Most groups that something happens to have members."""
        self.world = FakeShard(
            GroupSettings(group_initial_rebalance_delay_ms=delay_ms, group_max_size=size_max)
        )
        self.protocol = ClassicProtocol(self.world.shard)
        self.world.journal.replay = replay_into(self.protocol)
        for instance_id in instances:
            version = 3 if instance_id is None else 8
            self.join_new("g", version, instance_id, BOTH, "t1", 45_000, 60_000)
        self.advance(delay_ms)
        self.settle("g", BOTH)

    # Requests.

    @rule(
        group_id=GROUPS,
        version=st.sampled_from([0, 3, 4, 5, 8, 9]),
        instance_id=INSTANCES,
        protocols=PROTOCOLS,
        topic=st.sampled_from(["t1", "t2"]),
        session_ms=SESSIONS,
        rebalance_ms=TIMEOUTS,
    )
    def join_new(
        self,
        group_id: str,
        version: int,
        instance_id: str | None,
        protocols: list[str],
        topic: str,
        session_ms: int,
        rebalance_ms: int,
    ) -> None:
        told = Told("", -1, instance_id if version >= 5 else None)
        self.join(group_id, told, version, protocols, topic, session_ms, rebalance_ms)

    @rule(group_id=GROUPS, who=WHO, protocols=PROTOCOLS, rebalance_ms=TIMEOUTS)
    def join_again(self, group_id: str, who: int, protocols: list[str], rebalance_ms: int) -> None:
        told = self.pick(group_id, who)
        if told is not None:
            self.join(group_id, told, 9, protocols, "t1", 10_000, rebalance_ms)

    @rule(group_id=GROUPS, protocols=PROTOCOLS, version=st.sampled_from([5, 8, 9]))
    def come_back(self, group_id: str, protocols: list[str], version: int) -> None:
        """A static member is restarted, and knows nothing any more."""
        group = self.group(group_id)
        for instance_id in () if group is None else tuple(group.static_members):
            told = Told("", -1, instance_id)
            self.join(group_id, told, version, protocols, "t1", 45_000, 60_000)

    @rule(group_id=GROUPS, protocols=PROTOCOLS, all_but=st.integers(0, 5))
    def join_all(self, group_id: str, protocols: list[str], all_but: int) -> None:
        """What members do when there is a rebalance."""
        for number, told in enumerate(self.known(group_id)):
            if number + 1 != all_but:
                self.join(group_id, told, 9, protocols, "t2", 45_000, 60_000)
        self.advance(0)

    @rule(group_id=GROUPS, protocols=PROTOCOLS)
    def settle(self, group_id: str, protocols: list[str]) -> None:
        """A rebalance as it should be."""
        self.join_all(group_id, protocols, 0)
        self.sync_all(group_id, 0, False)

    def join(
        self,
        group_id: str,
        told: Told,
        version: int,
        protocols: list[str],
        topic: str,
        session_ms: int,
        rebalance_ms: int,
    ) -> None:
        instance_id = told.instance_id
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=told.member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=consumer_metadata(topic))
                for name in protocols
            ],
        )
        before = self.group(group_id)
        owner = before.static_members.get(instance_id or "") if before else None

        def answered(response: JoinGroupResponse) -> None:
            encode(response, version)
            code = response.error_code
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                self.told[group_id][response.member_id] = Told(response.member_id, -1, None)
            elif code == ErrorCode.NONE:
                self.check_joined(group_id, response, instance_id, owner)

        reply = self.expect(group_id, answered)
        client = Client(client_id="c", host="/10.0.0.1", api_version=version)
        self.step(lambda: self.protocol.join(request, client, reply))

    @rule(group_id=GROUPS, who=WHO, forgets=st.booleans(), wrong=st.integers(0, 9))
    def sync_one(self, group_id: str, who: int, forgets: bool, wrong: int) -> None:
        told = self.pick(group_id, who)
        if told is not None:
            self.sync(group_id, told, forgets=forgets, generation=told.generation + (wrong == 0))

    @rule(group_id=GROUPS, all_but=st.integers(0, 5), is_backwards=st.booleans())
    def sync_all(self, group_id: str, all_but: int, is_backwards: bool) -> None:
        """What members do when they have joined."""
        known = self.known(group_id)
        for number, told in enumerate(reversed(known) if is_backwards else known):
            if number + 1 != all_but:
                self.sync(group_id, told, forgets=False, generation=told.generation)

    def sync(self, group_id: str, told: Told, *, forgets: bool, generation: int) -> None:
        life = self.lives[group_id]
        members = told.members[1:] if forgets else told.members
        given = {member: f"{self.requests}-{member}".encode() for member in members}
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=told.member_id,
            group_instance_id=told.instance_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in given.items()
            ],
        )
        group = self.group(group_id)
        is_assigning = (
            group is not None
            and group.state is ClassicState.COMPLETING_REBALANCE
            and group.leader == told.member_id
            and group.generation == request.generation_id
        )
        if is_assigning:
            assert group is not None
            for member in group.members:
                key = (group_id, life, group.generation, member)
                self.assigned[key] = given.get(member, b"")

        def answered(response: SyncGroupResponse) -> None:
            encode(response, 4)
            if response.error_code == ErrorCode.NONE:
                key = (group_id, life, told.generation, told.member_id)
                assert response.assignment == self.assigned[key]
                assert response.protocol_name == self.protocols[key[:3]]

        reply = self.expect(group_id, answered)
        client = Client(client_id="c", host="/10.0.0.1", api_version=4)
        refused = self.world.journal.refused
        self.step(lambda: self.protocol.sync(request, client, reply), is_assigning=is_assigning)
        if self.world.journal.refused != refused:
            assert group is not None
            assert group.state is ClassicState.PREPARING_REBALANCE
            assert not group.sync_replies

    @rule(group_id=GROUPS, who=WHO)
    def heartbeat(self, group_id: str, who: int) -> None:
        told = self.pick(group_id, who)
        if told is not None:
            request = HeartbeatRequest(
                group_id=group_id,
                generation_id=told.generation,
                member_id=told.member_id,
                group_instance_id=told.instance_id,
            )
            client = Client(client_id="c", host="/10.0.0.1", api_version=4)
            self.step(lambda: self.protocol.heartbeat(request, client))

    @rule(group_id=GROUPS, many=st.lists(WHO, max_size=4), instance_id=INSTANCES)
    def leave(self, group_id: str, many: list[int], instance_id: str | None) -> None:
        identities = [
            MemberIdentity(member_id=told.member_id, group_instance_id=told.instance_id)
            for told in (self.pick(group_id, who) for who in many)
            if told is not None
        ]
        if instance_id is not None:
            identities.append(MemberIdentity(group_instance_id=instance_id))
        request = LeaveGroupRequest(group_id=group_id, members=identities)
        client = Client(client_id="c", host="/10.0.0.1", api_version=5)
        self.step(lambda: encode(self.protocol.leave(request, client), 5))

    # The world.

    @rule(delay_ms=st.sampled_from([0, 1, 500, 3_000, 5_000, 10_000, 60_000, 300_000]))
    def advance(self, delay_ms: int) -> None:
        end_ms = self.world.timers.now_ms + delay_ms
        while self.expire_next(end_ms):
            pass
        self.world.timers.now_ms = end_ms

    @rule(appends=st.integers(1, 3), after=st.integers(0, 2))
    def refuse(self, appends: int, after: int) -> None:
        self.world.journal.refuse(ErrorCode.NOT_ENOUGH_REPLICAS, appends=appends, after=after)

    @rule(who=WHO)
    def close_connection(self, who: int) -> None:
        if self.waiting:
            number = list(self.waiting)[who % len(self.waiting)]
            group_id, reply = self.replies[number]
            self.protocol.abandon(group_id, reply)
            del self.waiting[number]

    @rule(group_id=GROUPS, chance=st.integers(0, 4))
    def delete(self, group_id: str, chance: int) -> None:
        group = self.group(group_id)
        if group is not None and group.is_empty and chance == 0:
            self.world.journal.accept()
            self.world.journal.append(group.tombstones())
            self.lives[group_id] += 1

    @rule(chance=st.integers(0, 4))
    def reload(self, chance: int) -> None:
        """A restart: connections are gone, and with them who waits."""
        if chance:
            return
        for key in self.world.timers.remaining_ms():
            self.world.timers.cancel(key)
        self.waiting.clear()
        self.world.groups.clear()
        self.protocol = ClassicProtocol(self.world.shard)
        self.world.journal.replay = replay_into(self.protocol)
        for record in self.world.journal.records:
            self.world.journal.replay(record)
        self.protocol.on_loaded()
        for group_id in ("g", "h"):
            # Generations that were not stored are given again.
            self.lives[group_id] += 1
            group = self.group(group_id)
            if group is not None and group.members:
                life = (group_id, self.lives[group_id], group.generation)
                self.protocols[life] = group.protocol
                for member in group.members.values():
                    self.assigned[*life, member.member_id] = member.assignment

    # Checks.

    @invariant()
    def log_is_state(self) -> None:
        if not hasattr(self, "world"):
            return
        fresh = FakeShard()
        replay = replay_into(ClassicProtocol(fresh.shard))
        for record in self.world.journal.records:
            replay(record)
            replay(record)
        assert fresh.groups.keys() == self.world.groups.keys()
        for group_id, replayed in fresh.groups.items():
            live = self.group(group_id)
            assert live is not None
            assert isinstance(replayed, ClassicGroup)
            if live.state in (ClassicState.STABLE, ClassicState.EMPTY):
                assert stored_state(live) == stored_state(replayed)
                assert live.subscribed_topics == replayed.subscribed_topics
            else:
                assert live.generation >= replayed.generation

    @invariant()
    def groups_are_sound(self) -> None:
        if not hasattr(self, "world"):
            return
        needed: set[Hashable] = set()
        allowed: set[Hashable] = set()
        for group_id in self.world.groups:
            group = self.group(group_id)
            assert group is not None
            check_group(group)
            needed |= needed_timers(group)
            allowed |= allowed_timers(group)
        assert needed <= self.world.timers.remaining_ms().keys() <= allowed

    def teardown(self) -> None:
        """Nobody waits for ever, and nothing is left of members that say nothing any more."""
        if not hasattr(self, "world"):
            return
        self.world.journal.accept()
        self.advance(LONG_MS)
        self.advance(LONG_MS)
        assert not self.waiting
        assert not self.world.timers.remaining_ms()
        for group in self.world.groups.values():
            assert group.is_empty

    def check_joined(
        self,
        group_id: str,
        response: JoinGroupResponse,
        instance_id: str | None,
        owner: str | None,
    ) -> None:
        member_id, generation = response.member_id, response.generation_id
        group = self.group(group_id)
        assert group is not None
        life = (group_id, self.lives[group_id], generation)
        assert self.protocols.setdefault(life, response.protocol_name) == response.protocol_name
        members = tuple(member.member_id for member in response.members)
        if members:
            assert response.leader == member_id
            assert set(members) == group.members.keys()
        if group.state is ClassicState.STABLE and (*life, member_id) not in self.assigned:
            # A static member in the place of another one has what that one had.
            assert owner is not None
            self.assigned[*life, member_id] = self.assigned[*life, owner]
        self.told[group_id][member_id] = Told(member_id, generation, instance_id, members)

    def group(self, group_id: str) -> ClassicGroup | None:
        group = self.world.groups.get(group_id)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def known(self, group_id: str) -> list[Told]:
        """The clients that are members now, as far as they know it themselves."""
        group = self.group(group_id)
        ids = () if group is None else (*group.members, *group.pending_members)
        return [self.told[group_id][one] for one in ids if one in self.told[group_id]]

    def pick(self, group_id: str, who: int) -> Told | None:
        clients = self.known(group_id) if who < 7 else list(self.told[group_id].values())
        return clients[who % len(clients)] if clients else None

    def expect(self, group_id: str, answered: Callable[[Any], None]) -> Callable[[Any], None]:
        number = self.requests
        self.requests += 1

        def reply(response: Any) -> None:
            assert number in self.waiting, f"not expected: {response}"
            del self.waiting[number]
            answered(response)

        self.waiting[number] = group_id
        self.replies[number] = (group_id, reply)
        return reply

    def expire_next(self, end_ms: int) -> bool:
        timers, is_due = self.world.timers, False

        def expire() -> None:
            nonlocal is_due
            is_due = timers.expire_next(end_ms)

        self.step(expire)
        return is_due

    def step(self, command: Callable[[], object], *, is_assigning: bool = False) -> None:
        """Run a command. If the log refused, nothing may have changed, except when it was the
        leader who assigned (see protocol.py); a timer that has expired is to run again."""
        journal, timers = self.world.journal, self.world.timers
        refused = journal.refused
        groups = deepcopy(self.world.groups) if journal.will_refuse else {}
        states = {group_id: group.state_name for group_id, group in self.world.groups.items()}
        now_ms, running = timers.now_ms, timers.remaining_ms()
        waiting = set(self.waiting)
        command()
        if journal.refused != refused and not is_assigning:
            assert self.world.groups == groups
            assert timers.remaining_ms().keys() == running.keys()
            assert (
                timers.now_ms != now_ms
                or 0 in running.values()
                or (timers.remaining_ms() == running)
            )
            # Only the one who asked has been answered.
            assert len(waiting - self.waiting.keys()) <= 1
        for group_id, group in self.world.groups.items():
            assert isinstance(group, ClassicGroup)
            before = ClassicState(states.get(group_id, "Empty"))
            assert is_reachable(before, group.state), f"{before} -> {group.state}"


TestClassicMachine = ClassicMachine.TestCase
TestClassicMachine.settings = hypothesis_settings(stateful_step_count=40)

"""Heartbeats, joins, leaves, expiries and topic changes in any order, against what must hold."""

from __future__ import annotations

import copy
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import LEAVE_STATIC_EPOCH
from klamm.coordinator.consumer.sessions import REBALANCE, SESSION
from klamm.coordinator.consumer.state import (
    MEMBER_PREDECESSORS,
    PREDECESSORS,
    ConsumerGroupState,
    MemberState,
)
from klamm.coordinator.tests.consumer.clients import ConsumerClient
from klamm.coordinator.tests.consumer.world import World

TOPICS = ("foo1", "foo2", "bar")
EXPRESSIONS = ("foo.*", ".*", "bar|foo1", "none")
ROUND_MS = 5_000
ROUNDS = 20

names = st.lists(st.sampled_from((*TOPICS, "missing")), max_size=3, unique=True)
clients = st.integers(0, 4)


class ConsumerGroupMachine(RuleBasedStateMachine):
    @initialize(
        interval_ms=st.sampled_from((0, 1_000)),
        topics=st.lists(names, max_size=3),
        regex=st.sampled_from(("", "", *EXPRESSIONS)),
    )
    def begin(self, interval_ms: int, topics: list[list[str]], regex: str) -> None:
        self.world = World()
        self.world.set(group_consumer_assignment_interval_ms=interval_ms)
        self.world.fakes.topics.add("foo1", 3)
        self.other, self.replayed = World(), 0
        self.clients: dict[int, ConsumerClient] = {}
        self.epochs: dict[str, int] = {}
        self.states: dict[str, MemberState] = {}
        self.group_state = ConsumerGroupState.EMPTY
        self.ids = 0
        for number, each in enumerate(topics):
            self.join(number, each, regex, is_static=False, assignor=None, is_lost=False)

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.world.fakes.groups.get("g")
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    # What clients do.

    @rule(
        number=clients,
        topics=names,
        regex=st.sampled_from(("", *EXPRESSIONS)),
        is_static=st.booleans(),
        assignor=st.sampled_from((None, "uniform", "range")),
        is_lost=st.booleans(),
    )
    def join(
        self,
        number: int,
        topics: list[str],
        regex: str,
        is_static: bool,
        assignor: str | None,
        is_lost: bool,
    ) -> None:
        if number in self.clients:
            return
        self.ids += 1
        client = ConsumerClient(f"m{self.ids}", f"i{number}" if is_static else None)
        client.topics, client.regex, client.assignor = topics, regex, assignor
        self.clients[number] = client
        client.join(self.world, is_lost=is_lost)
        if not client.is_member and not is_lost:
            del self.clients[number]

    @rule(number=clients, reports=st.booleans(), is_lost=st.booleans())
    def heartbeat(self, number: int, reports: bool, is_lost: bool) -> None:
        if number in self.clients:
            self.clients[number].heartbeat(self.world, reports=reports, is_lost=is_lost)

    @rule(number=clients)
    def revoke(self, number: int) -> None:
        if number in self.clients:
            self.clients[number].finish_revocation()

    @rule(number=clients, topics=names, regex=st.sampled_from(("", *EXPRESSIONS)))
    def subscribe(self, number: int, topics: list[str], regex: str) -> None:
        if number in self.clients:
            client = self.clients[number]
            client.topics, client.regex, client.is_full = topics, regex, True
            client.heartbeat(self.world, reports=True, is_lost=False)

    @rule(number=clients, is_temporary=st.booleans())
    def leave(self, number: int, is_temporary: bool) -> None:
        client = self.clients.pop(number, None)
        if client is not None:
            client.leave(self.world, is_temporary=is_temporary)

    @rule(number=clients)
    def vanish(self, number: int) -> None:
        self.clients.pop(number, None)

    @rule()
    def go_round(self) -> None:
        """Everybody does what is due."""
        for client in self.clients.values():
            client.finish_revocation()
            client.heartbeat(self.world, reports=True, is_lost=False)
        self.world.fakes.timers.advance(1_000)
        self._forget_the_removed()

    # What the world does.

    @rule(delay_ms=st.sampled_from((1, 999, 1_000, 11_000, 46_000, 700_000)))
    def pass_time(self, delay_ms: int) -> None:
        self.world.fakes.timers.advance(delay_ms)
        self._forget_the_removed()

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 5))
    def change_topic(self, name: str, partitions: int) -> None:
        known = self.world.fakes.topics.find(name)
        if known is None or known.partition_count < partitions:
            self.world.add_topic(name, partitions)

    @rule(name=st.sampled_from(TOPICS))
    def remove_topic(self, name: str) -> None:
        if self.world.fakes.topics.find(name) is not None:
            self.world.remove_topic(name)

    @rule()
    def resolve(self) -> None:
        self.world.background.finish()

    @rule(number=clients)
    def refuse(self, number: int) -> None:
        """The log refuses: whatever a client or a timer wanted, nothing has happened."""
        journal = self.world.fakes.journal
        before, timers = copy.deepcopy(self.group), self.world.fakes.timers.remaining_ms()
        refused = journal.refused
        journal.refuse()
        if number in self.clients:
            self.clients[number].heartbeat(self.world, reports=True, is_lost=True)
        else:
            ConsumerClient("refused", None).join(self.world, is_lost=True)
        journal.accept()
        assert self.group == before
        if journal.refused > refused:
            assert self.world.fakes.timers.remaining_ms() == timers

    @rule()
    def reload(self) -> None:
        self.world.load()
        self.world.consumer.on_loaded()

    def _forget_the_removed(self) -> None:
        """A client that hears nothing for so long stops by itself."""
        members = self.group.members if self.group else {}
        for client in self.clients.values():
            if client.member_id not in members:
                client.lose_everything()

    # What holds at all times.

    @invariant()
    def replay_is_live(self) -> None:
        """Another shard that reads the log has the same groups, also if it reads twice."""
        batches = self.world.fakes.journal.batches
        for batch in batches[self.replayed :]:
            for record in batch:
                self.other.replay(record)
                self.other.replay(record)
        self.replayed = len(batches)
        assert self.other.fakes.groups == self.world.fakes.groups

    @invariant()
    def nothing_has_two_owners(self) -> None:
        if self.group is None:
            return
        owners: dict[tuple[UUID, int], str] = {}
        for member in self.group.members.values():
            for partition in member.owned():
                assert partition not in owners, f"{partition}: {owners[partition]}, {member}"
                owners[partition] = member.member_id
        assert owners == {
            (topic_id, partition): owner
            for topic_id, partitions in self.group.owners.items()
            for partition, owner in partitions.items()
        }

    @invariant()
    def no_two_clients_use_the_same(self) -> None:
        used: set[tuple[UUID, int]] = set()
        members = self.group.members if self.group else {}
        for client in self.clients.values():
            if client.member_id in members:
                assert used.isdisjoint(client.used)
                used |= client.used

    @invariant()
    def epochs_never_go_back(self) -> None:
        members = self.group.members if self.group else {}
        for member_id, member in members.items():
            if member.member_epoch != LEAVE_STATIC_EPOCH:
                assert member.member_epoch >= self.epochs.get(member_id, 0)
        self.epochs = {member_id: member.member_epoch for member_id, member in members.items()}

    @invariant()
    def states_follow_the_tables(self) -> None:
        state = self.group.state if self.group else ConsumerGroupState.EMPTY
        assert state is self.group_state or self.group_state in PREDECESSORS[state]
        self.group_state = state
        members = self.group.members if self.group else {}
        for member_id, member in members.items():
            before = self.states.get(member_id, MemberState.STABLE)
            assert member.state is before or before in MEMBER_PREDECESSORS[member.state]
        self.states = {member_id: member.state for member_id, member in members.items()}

    @invariant()
    def deadlines_run(self) -> None:
        expected = set()
        for member in self.group.members.values() if self.group else ():
            expected.add((SESSION, "g", member.member_id))
            if (
                member.state is MemberState.UNREVOKED_PARTITIONS
                and member.member_epoch != LEAVE_STATIC_EPOCH
            ):
                expected.add((REBALANCE, "g", member.member_id))
        running = {
            key
            for key in self.world.fakes.timers.remaining_ms()
            if not (isinstance(key, tuple) and key[0] == REBALANCE) or key in expected
        }
        assert running == expected

    # What holds when all is quiet.

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self._settle()
            self.all_is_quiet()
            # Whatever has happened before, the group still sees when topics change.
            known = self.world.fakes.topics.find("foo1")
            self.world.add_topic("foo1", known.partition_count + 1 if known else 1)
            self.world.add_topic("foo3", 2)
            self._settle()
            self.all_is_quiet()

    def _settle(self) -> None:
        """Let everybody do what is due, for longer than a session."""
        for _ in range(ROUNDS):
            for client in self.clients.values():
                if not client.is_member:
                    client.lose_everything()
                    client.join(self.world, is_lost=False)
                client.finish_revocation()
                client.heartbeat(self.world, reports=True, is_lost=False)
            self.world.background.finish()
            self.world.fakes.timers.advance(ROUND_MS)
            self._forget_the_removed()

    def all_is_quiet(self) -> None:
        group = self.group
        if group is None or not group.members:
            return
        topics = self.world.fakes.topics
        assert group.state is ConsumerGroupState.STABLE
        assert group.members.keys() == {client.member_id for client in self.clients.values()}
        owned: set[tuple[UUID, int]] = set()
        for member in group.members.values():
            assert {t: frozenset(p) for t, p in member.assigned.items()} == group.target.get(
                member.member_id, {}
            )
            owned.update(member.owned())
        assert owned == {
            (topic.topic_id, partition)
            for topic in map(topics.find, topics.names())
            if topic is not None
            and any(client.subscribes_to(topic.name) for client in self.clients.values())
            for partition in range(topic.partition_count)
        }
        for client in self.clients.values():
            assert client.used == set(group.members[client.member_id].owned())


TestConsumerGroup = ConsumerGroupMachine.TestCase
TestConsumerGroup.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)

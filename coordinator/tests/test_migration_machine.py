"""Consumers of both protocols come to one group and go, in any order: it moves both ways.

Meanwhile they commit, also what they should not any more: an offset changes only for a member that
is up to date, or that nobody can have taken the partition from.
"""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.state import ConsumerGroupState
from klamm.coordinator.tests.consumer.clients import ClassicClient, ConsumerClient
from klamm.coordinator.tests.consumer.world import World
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

ROUND_MS = 3_000
ROUNDS = 60

AnyClient: TypeAlias = ClassicClient | ConsumerClient
clients = st.integers(0, 3)
subscriptions = st.sampled_from((["foo"], ["foo", "bar"], ["bar"]))
protocols = st.sampled_from((["range"], ["sticky", "range"]))


class MigrationMachine(RuleBasedStateMachine):
    @initialize(are_classic=st.lists(st.booleans(), max_size=3))
    def begin(self, are_classic: list[bool]) -> None:
        self.world = World()
        self.world.fakes.topics.add("foo", 3)
        self.world.fakes.topics.add("bar", 2)
        self.other, self.replayed = World(), 0
        self.clients: dict[int, AnyClient] = {}
        # They may still commit, wherever they are.
        self.vanished: dict[int, AnyClient] = {}
        self.ids = 0
        self.commits = 0
        for number, is_classic in enumerate(are_classic):
            self.come(number, ["foo"], is_classic, ["range"], is_static=False)

    @property
    def member_ids(self) -> set[str]:
        group = self.world.fakes.groups.get("g")
        assert group is None or isinstance(group, ClassicGroup | ConsumerGroup)
        return set(group.members) if group else set()

    @rule(
        number=clients,
        topics=subscriptions,
        is_classic=st.booleans(),
        protocols=protocols,
        is_static=st.booleans(),
    )
    def come(
        self,
        number: int,
        topics: list[str],
        is_classic: bool,
        protocols: list[str],
        is_static: bool,
    ) -> None:
        if number in self.clients:
            return
        self.ids += 1
        instance_id = f"i{number}" if is_static else None
        client: AnyClient
        if is_classic:
            client = ClassicClient(f"c{self.ids}", instance_id, protocols)
        else:
            client = ConsumerClient(f"m{self.ids}", instance_id)
        client.topics = topics
        self.clients[number] = client
        self._go_on(client)

    @rule(number=clients)
    def go_on(self, number: int) -> None:
        if number in self.clients:
            self._go_on(self.clients[number])

    @rule(number=clients, is_temporary=st.booleans())
    def leave(self, number: int, is_temporary: bool) -> None:
        match self.clients.pop(number, None):
            case ClassicClient() as client:
                client.leave(self.world)
            case ConsumerClient() as client:
                client.leave(self.world, is_temporary=is_temporary)

    @rule(number=clients)
    def vanish(self, number: int) -> None:
        if number in self.clients:
            self.vanished[number] = self.clients.pop(number)

    @rule(
        number=clients,
        has_vanished=st.booleans(),
        topic=st.sampled_from(("foo", "bar")),
        partition=st.integers(0, 1),
        off_by=st.sampled_from((0, 0, -1, 1)),
    )
    def commit(
        self, number: int, has_vanished: bool, topic: str, partition: int, off_by: int
    ) -> None:
        client = (self.vanished if has_vanished else self.clients).get(number)
        if client is None or not client.is_member:
            return
        epoch = client.generation if isinstance(client, ClassicClient) else client.epoch
        self.commits += 1
        before = self.world.committed("g")
        code = self._commit(client, topic, partition, epoch + off_by)
        is_right = self._may_commit(client, topic, partition, epoch + off_by)
        assert (code is ErrorCode.NONE) == is_right, code
        changed = {(topic, partition): self.commits} if is_right else {}
        assert self.world.committed("g") == before | changed

    def _commit(self, client: AnyClient, topic: str, partition: int, epoch: int) -> ErrorCode:
        return self.world.commit(
            OffsetCommitRequest(
                group_id="g",
                member_id=client.member_id,
                group_instance_id=client.instance_id,
                generation_id_or_member_epoch=epoch,
                topics=[
                    OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[
                            OffsetCommitRequestPartition(
                                partition_index=partition, committed_offset=self.commits
                            )
                        ],
                    )
                ],
            )
        )

    def _may_commit(self, client: AnyClient, topic: str, partition: int, epoch: int) -> bool:
        group = self.world.fakes.groups.get("g")
        if isinstance(group, ClassicGroup):
            return (
                client.member_id in group.members
                and group.generation == epoch
                and group.state is not ClassicState.COMPLETING_REBALANCE
            )
        if not isinstance(group, ConsumerGroup) or client.member_id not in group.members:
            return False
        member = group.members[client.member_id]
        known = self.world.fakes.topics.find(topic)
        assert known is not None
        # What it was given in that epoch or before, and has not given back.
        given = member.assigned.get(known.topic_id, {}) | member.pending_revocation.get(
            known.topic_id, {}
        )
        owned_since = given.get(partition)
        return epoch == member.member_epoch or (
            owned_since is not None and owned_since <= epoch < member.member_epoch
        )

    @rule(rounds=st.integers(1, 4))
    def go_round(self, rounds: int) -> None:
        """Everybody does what is due, for a while."""
        for _ in range(rounds):
            self._go_round()

    @rule(delay_ms=st.sampled_from((1, 1_000, 31_000, 61_000)))
    def pass_time(self, delay_ms: int) -> None:
        self.world.fakes.timers.advance(delay_ms)
        self._forget_the_removed()

    @rule(topic=st.sampled_from(("foo", "bar")))
    def grow(self, topic: str) -> None:
        known = self.world.fakes.topics.find(topic)
        assert known is not None
        self.world.add_topic(topic, known.partition_count + 1)

    @rule(number=clients)
    def refuse(self, number: int) -> None:
        """What the log refuses, it may take the next time."""
        if number in self.clients:
            self.world.fakes.journal.refuse()
            self._go_on(self.clients[number])
            self.world.fakes.journal.accept()

    @rule()
    def reload(self) -> None:
        """Another broker has the shard now; clients that wait hear that this one has not."""
        self.world.classic.on_unloaded()
        self.world.consumer.on_unloaded()
        assert not self.world.fakes.timers.remaining_ms()
        self.world.load()
        self.world.classic.on_loaded()
        self.world.consumer.on_loaded()

    def _go_on(self, client: AnyClient) -> None:
        if isinstance(client, ClassicClient):
            client.go_on(self.world)
        elif client.is_member:
            client.finish_revocation()
            client.heartbeat(self.world, reports=True, is_lost=False)
        else:
            client.join(self.world, is_lost=False)

    def _go_round(self) -> None:
        for client in self.clients.values():
            self._go_on(client)
        self.world.fakes.timers.advance(ROUND_MS)
        self._forget_the_removed()

    def _forget_the_removed(self) -> None:
        """A client that hears nothing for so long stops by itself."""
        for client in self.clients.values():
            if client.member_id not in self.member_ids:
                client.used.clear()

    @invariant()
    def replay_is_live(self) -> None:
        """A shard that reads the log has the same consumer groups. Of classic groups the log knows
        the last generation, and not who is about to join the next."""
        batches = self.world.fakes.journal.batches
        for batch in batches[self.replayed :]:
            for record in batch:
                self.other.replay(record)
        self.replayed = len(batches)
        live, stored = self.world.fakes.groups, self.other.fakes.groups
        assert live.keys() == stored.keys()
        for group_id, group in live.items():
            assert group.TYPE == stored[group_id].TYPE
            assert not isinstance(group, ConsumerGroup) or group == stored[group_id]
            assert self.world.committed(group_id) == self.other.committed(group_id)

    @invariant()
    def no_two_clients_use_the_same(self) -> None:
        used: set[tuple[UUID, int]] = set()
        for client in self.clients.values():
            if client.member_id in self.member_ids:
                assert used.isdisjoint(client.used), self.clients
                used |= client.used

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for _ in range(ROUNDS):
            self._go_round()
        group = self.world.fakes.groups.get("g")
        if not self.clients:
            assert group is None or group.is_empty
            return
        assert self.member_ids == {client.member_id for client in self.clients.values()}
        if all(isinstance(client, ClassicClient) for client in self.clients.values()):
            # What is assigned is now up to the leader.
            assert isinstance(group, ClassicGroup)
            assert group.state is ClassicState.STABLE
            return
        assert isinstance(group, ConsumerGroup)
        assert group.state is ConsumerGroupState.STABLE
        subscribed = {topic for client in self.clients.values() for topic in client.topics}
        used = [partition for client in self.clients.values() for partition in client.used]
        assert sorted(used) == sorted(
            (topic.topic_id, partition)
            for topic in map(self.world.fakes.topics.find, subscribed)
            if topic is not None
            for partition in range(topic.partition_count)
        )


TestMigration = MigrationMachine.TestCase
TestMigration.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)

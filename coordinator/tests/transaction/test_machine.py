"""Producers, zombies, crashes and time against one coordinator, in any order.

Replies leave, batches are written and markers begin only when the log of the coordinator is on disk
up to there, as in the broker. A crash takes everything behind that, and perhaps markers that were
not synced. Whatever happens: what is replayed is what was known; all partitions see one outcome of
a transaction, which is the one that its producer was told; and no marker decides about data of
another transaction than its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.tests.transaction.world import MarkerTask, World
from klamm.coordinator.transaction.coordinator import ProducerIdentity
from klamm.coordinator.transaction.state import TransactionState
from klamm.wire.errors import ErrorCode

# Transactional id and version of transactions. Of the first id there are several producers, so
# that some are zombies.
CLIENTS = (("a", 2), ("a", 2), ("a", 0), ("b", 2))
PARTITIONS = (("t", 0), ("t", 1))
STEPS = 80
# What happens next, and how often: mostly producers go on and end what they have begun.
WEIGHTS = {
    "write": 6,
    "end": 4,
    "write_markers": 6,
    "sync": 3,
    "init": 2,
    "crash": 1,
    "pass_time": 1,
    "refuse_an_append": 1,
}
# Mostly it is the producer that got its identity last who acts, sometimes one of before.
RANKS = (0, 0, 0, 0, 1, 1, 2, 3)
EXPECTED = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


@dataclass
class Client:
    """A producer that does not know whether it is the only one."""

    transactional_id: str
    version: int
    identity: ProducerIdentity = field(default_factory=lambda: ProducerIdentity(-1, -1))
    # The number of the transaction that it has written in last.
    number: int = 0


@dataclass
class Entry:
    """What stands in a partition: data of a transaction by its number, or a marker."""

    producer: ProducerIdentity
    number: int | None
    is_commit: bool = False
    is_synced: bool = True


class Model:
    """The coordinator, the partitions, and what everybody thinks.

    Args:
        random: decides what happens, and how.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.world = World()
        self.clients = [Client(name, version) for name, version in CLIENTS]
        self.logs: dict[tuple[str, int], list[Entry]] = {one: [] for one in PARTITIONS}
        self.durable = 0
        self.waiting: list[tuple[int, Callable[[], None]]] = []
        # The number of the transaction that each id has open, and what its producer was told.
        self.numbers: dict[str, int] = {}
        self.told: dict[int, bool] = {}
        self._count = 0
        # Those who have an identity, the newest first.
        self.ranked: list[Client] = []

    def take_steps(self) -> None:
        for _ in range(STEPS):
            (name,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            getattr(self, name)()
            self.check_replay()
            self.check_outcomes()
        self.finish()

    # --- what clients do ---

    def init(self) -> None:
        client = self.random.choice(self.clients)
        goes_on = client.identity.producer_id >= 0 and self.flip()
        expected = client.identity if goes_on else None

        def command() -> None:
            given = self.world.coordinator.init_producer_id(client.transactional_id, 100, expected)
            self.later(lambda: self.identify(client, given))

        self.attempt(command)

    def write(self) -> None:
        client = self.somebody()
        partitions = set(self.random.sample(PARTITIONS, self.random.randint(1, len(PARTITIONS))))
        coordinator = self.world.coordinator
        name, identity = client.transactional_id, client.identity

        def command() -> None:
            before = coordinator.get(name)
            coordinator.add_partitions(name, identity, partitions, client.version)
            if before is None or before.state is not TransactionState.ONGOING:
                self._count += 1
                self.numbers[name] = client.number = self._count
            transaction = self.numbers[name]
            assert client.number == transaction, "somebody writes in another's transaction"
            for partition in partitions:
                ended = self.markers_of(partition, identity.producer_id)
                self.later(self.appending(partition, identity, transaction, ended))

        self.attempt(command)

    def end(self) -> None:
        client, commit = self.somebody(), self.flip()
        name, identity = client.transactional_id, client.identity

        def command() -> None:
            before = self.world.coordinator.get(name)
            given = self.world.coordinator.end(
                name, identity, commit=commit, client_version=client.version
            )
            if client.version >= 2:
                self.later(lambda: setattr(client, "identity", given))
            if before is not None and before.state is TransactionState.ONGOING:
                transaction = self.numbers[name]
                assert client.number == transaction, "somebody ends another's transaction"
                self.later(lambda: self.told.update({transaction: commit}))

        self.attempt(command)

    # --- what happens ---

    def sync(self) -> None:
        self.durable = len(self.world.journal.batches)
        waiting, self.waiting = self.waiting, []
        for needs, call in waiting:
            assert needs <= self.durable
            call()

    def write_markers(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            due = [task for task in self.world.markers.tasks if task.needs <= self.durable]
            if due and due[0].left:
                self.append_marker(due[0], self.random.choice(due[0].left))
            elif due:
                self.complete(due[0])

    def pass_time(self) -> None:
        self.world.now_ms += self.random.choice((50, 101))
        self.attempt(self.world.abort_timed_out)

    def refuse_an_append(self) -> None:
        self.world.journal.refuse()

    def crash(self) -> None:
        kept = self.random.randint(self.durable, len(self.world.journal.batches))
        for log in self.logs.values():
            while log and not log[-1].is_synced and self.flip():
                log.pop()
            for entry in log:
                entry.is_synced = True
        self.waiting.clear()
        self.world.journal.accept()
        self.world.crash(kept)
        self.durable = kept

    # --- steps ---

    def flip(self) -> bool:
        return self.random.random() < 0.5

    def somebody(self) -> Client:
        if not self.ranked:
            return self.clients[0]
        return self.ranked[self.random.choice(RANKS) % len(self.ranked)]

    def identify(self, client: Client, given: ProducerIdentity) -> None:
        client.identity = given
        self.ranked = [client, *(one for one in self.ranked if one is not client)]

    def attempt(self, command: Callable[[], None]) -> None:
        code = None
        try:
            command()
        except CoordinatorError as error:
            code = error.code
        assert code is None or code in EXPECTED, code
        self.world.journal.accept()
        if self.flip():
            self.sync()

    def later(self, call: Callable[[], None]) -> None:
        """As soon as all that is in the log now is on disk."""
        self.waiting.append((len(self.world.journal.batches), call))

    def appending(
        self, partition: tuple[str, int], who: ProducerIdentity, number: int, ended: int
    ) -> Callable[[], None]:
        def append() -> None:
            log = self.logs[partition]
            epochs = [one.producer.producer_epoch for one in log if self.is_of(one, who)]
            is_guarded = self.markers_of(partition, who.producer_id) == ended
            if is_guarded and who.producer_epoch >= max(epochs, default=-1):
                log.append(Entry(who, number))

        return append

    def is_of(self, entry: Entry, who: ProducerIdentity) -> bool:
        return entry.producer.producer_id == who.producer_id

    def markers_of(self, partition: tuple[str, int], producer_id: int) -> int:
        return sum(
            one.number is None and one.producer.producer_id == producer_id
            for one in self.logs[partition]
        )

    def append_marker(self, task: MarkerTask, partition: tuple[str, int]) -> None:
        outcome = task.outcome
        who = ProducerIdentity(outcome.producer_id, outcome.producer_epoch)
        self.logs[partition].append(Entry(who, None, outcome.is_commit, is_synced=False))
        task.written.add(partition)

    def complete(self, task: MarkerTask) -> None:
        for partition in task.outcome.partitions:
            for entry in self.logs[partition]:
                entry.is_synced = True
        try:
            task.done()
        except CoordinatorError:
            # The broker tries it again.
            return
        self.world.markers.tasks.remove(task)

    # --- what must hold ---

    def check_replay(self) -> None:
        assert self.world.replayed() == self.world.transactions

    def check_outcomes(self) -> None:
        outcomes: dict[int, bool] = {}
        for log in self.logs.values():
            opened: dict[int, set[int]] = {}
            for entry in log:
                numbers = opened.setdefault(entry.producer.producer_id, set())
                if entry.number is not None:
                    numbers.add(entry.number)
                    continue
                assert len(numbers) <= 1, "a marker decides about several transactions"
                for number in numbers:
                    assert outcomes.setdefault(number, entry.is_commit) is entry.is_commit
                numbers.clear()
        for number, is_commit in self.told.items():
            assert outcomes.get(number, is_commit) is is_commit

    def finish(self) -> None:
        """In the end nothing is left open of what producers were told."""
        self.world.journal.accept()
        self.sync()
        for task in list(self.world.markers.tasks):
            for partition in task.left:
                self.append_marker(task, partition)
            self.complete(task)
        self.check_outcomes()
        for log in self.logs.values():
            opened: dict[int, set[int]] = {}
            for entry in log:
                numbers = opened.setdefault(entry.producer.producer_id, set())
                if entry.number is None:
                    numbers.clear()
                else:
                    numbers.add(entry.number)
            for numbers in opened.values():
                assert not numbers & self.told.keys(), "a transaction that has ended is open"


@given(st.integers(0, 2**64))
def test_whatever_happens(seed: int) -> None:
    Model(Random(seed)).take_steps()

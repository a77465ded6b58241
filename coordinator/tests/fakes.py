"""The world of a coordinator in memory: a log that can refuse, timers that tests move, topics."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from uuid import UUID

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Group, Shard
from klamm.coordinator.ports import (
    CoordinatorRecord,
    OpenTransaction,
    TopicDescription,
    TransactionMarker,
)
from klamm.coordinator.settings import GroupSettings
from klamm.wire.codec import decode, encode
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import NO_PRODUCER_ID

Entry = CoordinatorRecord | TransactionMarker

# More timers than this at one time are a loop of timers without delay.
EXPIRIES_MAX = 100_000


def stored(record: CoordinatorRecord) -> CoordinatorRecord:
    """The record as it comes back from a log: through bytes, and nothing shared with the old."""
    key, value = record.key, record.value
    if value is not None:
        value = decode(type(value), record.value_version, encode(value, record.value_version))
    return CoordinatorRecord(
        decode(type(key), 0, encode(key, 0)), value, record.value_version, record.producer_id
    )


class FakeJournal:
    """Keeps what is appended, and replays it like the broker's.

    Args:
        replay: what changes the state; it may be set later.
    """

    def __init__(self, replay: Callable[[Entry], None] | None = None) -> None:
        self.replay = replay
        self.batches: list[list[CoordinatorRecord]] = []
        # Records and markers, in the order of the log.
        self.entries: list[Entry] = []
        self.refused = 0
        self._refusals: list[ErrorCode | None] = []

    @property
    def records(self) -> list[CoordinatorRecord]:
        return [record for batch in self.batches for record in batch]

    def refuse(
        self, code: ErrorCode = ErrorCode.NOT_ENOUGH_REPLICAS, *, appends: int = 1, after: int = 0
    ) -> None:
        """Refuse that many appends, after as many as `after` that are accepted."""
        self._refusals = [None] * after + [code] * appends

    @property
    def will_refuse(self) -> bool:
        return bool(self._refusals)

    def accept(self) -> None:
        """Refuse nothing any more."""
        self._refusals = []

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        transaction: OpenTransaction | None = None,
    ) -> None:
        producer_id = NO_PRODUCER_ID if transaction is None else transaction.producer_id
        assert all(record.producer_id == producer_id for record in records)
        refusal = self._refusals.pop(0) if self._refusals else None
        if refusal is not None:
            self.refused += 1
            raise CoordinatorError(refusal)
        batch = [stored(record) for record in records]
        self.batches.append(batch)
        self.entries += batch
        self.replay_batch(batch)

    def replay_batch(self, batch: Sequence[CoordinatorRecord]) -> None:
        """One record after another, unless somebody does it better."""
        assert self.replay is not None, "the journal has nobody to replay to"
        for record in batch:
            self.replay(record)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Append a marker, as the coordinator of transactions does."""
        assert self.replay is not None, "the journal has nobody to replay to"
        marker = TransactionMarker(producer_id, is_commit)
        self.entries.append(marker)
        self.replay(marker)


class FakeTimers:
    """Timers that fire when a test advances the time, in the order of their deadlines."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._timers: dict[Hashable, tuple[int, int, Callable[[], None]]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._numbers = count()

    def schedule(self, key: Hashable, delay_ms: int, expire: Callable[[], None]) -> None:
        assert delay_ms >= 0, f"{key}: a delay of {delay_ms} ms"
        deadline, number = self.now_ms + delay_ms, next(self._numbers)
        self._timers[key] = deadline, number, expire
        heapq.heappush(self._heap, (deadline, number, key))

    def cancel(self, key: Hashable) -> None:
        self._timers.pop(key, None)

    def advance(self, delay_ms: int = 0) -> None:
        """Let time pass, and call what expires meanwhile; without a delay, what is due now."""
        end_ms = self.now_ms + delay_ms
        for _ in range(EXPIRIES_MAX):
            if not self.expire_next(end_ms):
                break
        else:
            raise AssertionError(f"more than {EXPIRIES_MAX} timers expired in {delay_ms} ms")
        self.now_ms = end_ms

    def expire_next(self, end_ms: int) -> bool:
        """Let time pass until the next timer expires, if one does until then."""
        while self._heap and self._heap[0][0] <= end_ms:
            deadline, number, key = heapq.heappop(self._heap)
            timer = self._timers.get(key)
            if timer is not None and timer[1] == number:
                self.now_ms = deadline
                del self._timers[key]
                timer[2]()
                return True
        return False

    def remaining_ms(self) -> dict[Hashable, int]:
        """How long each timer that runs still has."""
        return {key: timer[0] - self.now_ms for key, timer in self._timers.items()}


class FakeTopics:
    """Topics that a test creates and removes; ids are numbered."""

    def __init__(self) -> None:
        self.version = 0
        self._topics: dict[str, TopicDescription] = {}

    def add(
        self, name: str, partitions: int = 1, racks: Iterable[Iterable[str]] | None = None
    ) -> TopicDescription:
        """Create a topic, or change how many partitions it has.

        Args:
            racks: the racks of each partition; by default none is known.
        """
        self.version += 1
        known = self._topics.get(name)
        self._topics[name] = topic = TopicDescription(
            name=name,
            topic_id=known.topic_id if known else UUID(int=self.version),
            racks=tuple(map(frozenset, racks)) if racks else (frozenset(),) * partitions,
        )
        return topic

    def remove(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def names(self) -> Iterable[str]:
        return list(self._topics)

    def find(self, name: str) -> TopicDescription | None:
        return self._topics.get(name)

    def find_by_id(self, topic_id: UUID) -> TopicDescription | None:
        return next((t for t in self._topics.values() if t.topic_id == topic_id), None)


class FakeShard:
    """A shard with everything fake, and the fakes at hand. Member ids are the same in every run.

    Wall time begins at `EPOCH_MS` and passes with the timers.
    """

    EPOCH_MS = 1_700_000_000_000

    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.journal = FakeJournal()
        self.timers = FakeTimers()
        self.topics = FakeTopics()
        self.groups: dict[str, Group] = {}
        numbers = random.Random(0)
        self.shard = Shard(
            groups=self.groups,
            journal=self.journal,
            timers=self.timers,
            topics=self.topics,
            settings=settings or GroupSettings(),
            new_uuid=lambda: UUID(int=numbers.getrandbits(128), version=4),
            now_ms=lambda: self.EPOCH_MS + self.timers.now_ms,
        )

"""Incremental fetch sessions (KIP-227): the broker remembers what a consumer fetches.

A consumer names its partitions once; from then on a request carries only what changed, and the
reply only partitions with data, an error or moved offsets. A session is named by
its id; its epoch grows by one with each request, so that a lost reply can't go unnoticed.

A request with epoch 0 asks for a new session, -1 for none; anything else continues one. The
session's partitions are remembered when the reply is made, as in Kafka, so that a fetch that never
got an answer leaves nothing behind.

A partition that has nothing which its consumer does not know falls asleep: fetches pass it by
until an append, a later log start, its deletion or the end of its disk wakes it. So a fetch costs
what has changed, and not what the session has.

The cache is bounded. A full cache takes a new session only in the place of one that has not been
used for two minutes; otherwise the reply has session id 0 and the consumer keeps sending
everything, which is always legal.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from operator import attrgetter
from typing import Protocol, TypeAlias
from uuid import UUID

from klamm.broker.partition import Partition
from klamm.broker.steps import Stepwise
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INVALID_SESSION_ID = 0
INT32_MAX = 2**31 - 1
EVICTION_AGE_S = 120.0

PartitionKey = tuple[str, UUID, int]


class Reader(Protocol):
    """A fetch under way, which hears of what wakes up in its session meanwhile."""

    def on_awake(self, asked: SessionPartition, partition: Partition) -> None: ...


@dataclass(slots=True, eq=False)
class SessionPartition:
    """A partition in a session: what the consumer asked for last, and what it was told last."""

    topic: str
    topic_id: UUID
    index: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    # The name that the id had when it was first looked up, for versions that have ids only.
    resolved_topic: str | None = None
    # What the consumer has been told; -1 makes the next reply include the partition.
    told_high_watermark: int = -1
    told_log_start_offset: int = -1
    # Partitions are served in the order of their ranks.
    rank: int = 0
    # Where it sleeps, and whom it tells when it wakes up.
    asleep_at: Partition | None = None
    session: FetchSession | None = None

    @property
    def key(self) -> PartitionKey:
        return (self.topic, self.topic_id, self.index)

    def is_told(self, result: PartitionData) -> bool:
        """Whether the consumer knows all of a partition, which was read without an error."""
        return (
            self.fetch_offset == result.high_watermark == self.told_high_watermark
            and self.told_log_start_offset == result.log_start_offset
            and result.diverging_epoch.end_offset < 0
        )

    def on_change(self, partition: Partition) -> None:
        """It sleeps, and something has happened to its partition."""
        session = self.session
        assert session is not None
        session.wake(self)
        if session.reader is not None:
            session.reader.on_awake(self, partition)


by_rank = attrgetter("rank")


Answer: TypeAlias = tuple[SessionPartition, PartitionData]


@dataclass(slots=True)
class FetchSession:
    """The partitions of one consumer.

    Attributes:
        awake: what the next fetch has to look at.
        reader: the fetch that is under way.
    """

    session_id: int
    uses_topic_ids: bool
    used_at: float
    epoch: int = 1
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)
    awake: dict[SessionPartition, None] = field(init=False)
    reader: Reader | None = None
    is_open: bool = True
    _ranks: count[int] = field(init=False)

    def __post_init__(self) -> None:
        self.awake = dict.fromkeys(self.partitions.values())
        self._ranks = count(len(self.partitions))

    def next_epoch(self) -> int:
        return 1 if self.epoch == INT32_MAX else self.epoch + 1

    def add(self, asked: SessionPartition) -> None:
        self.partitions[asked.key] = asked
        self.awake[asked] = None
        self.move_to_end(asked)

    def forget(self, key: PartitionKey) -> None:
        asked = self.partitions.pop(key, None)
        if asked is not None:
            self.wake(asked)
            del self.awake[asked]

    def move_to_end(self, asked: SessionPartition) -> None:
        """A partition that gave data goes behind the others, so that none of them starves."""
        asked.rank = next(self._ranks)

    def let_sleep(self, asked: SessionPartition, partition: Partition) -> None:
        # Another request may have ended the session meanwhile, or made it forget the partition.
        if self.is_open and asked in self.awake:
            del self.awake[asked]
            asked.session = self
            asked.asleep_at = partition
            partition.parked[asked] = None

    def wake(self, asked: SessionPartition) -> None:
        partition, asked.asleep_at = asked.asleep_at, None
        if partition is not None:
            del partition.parked[asked]
            self.awake[asked] = None

    def close(self) -> None:
        """Leave nothing behind in the partitions; a fetch under way reads them itself now."""
        self.is_open = False
        for asked in self.partitions.values():
            if asked.asleep_at is not None:
                asked.on_change(asked.asleep_at)


class FetchSessionCache:
    """All sessions of this broker, least recently used first."""

    def __init__(self, slots_max: int) -> None:
        self._slots_max = slots_max
        self._sessions: dict[int, FetchSession] = {}
        # Session ids need not be secret, only unlikely to repeat.
        self._random = random.Random()

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def touch(self, session: FetchSession, now: float) -> None:
        session.used_at = now
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def create(
        self, partitions: dict[PartitionKey, SessionPartition], uses_topic_ids: bool, now: float
    ) -> FetchSession | None:
        """A new session, or None when the cache is full of sessions in use."""
        if len(self._sessions) >= self._slots_max and not self._evict(now):
            return None
        session_id = self._random.randint(1, INT32_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, INT32_MAX)
        session = FetchSession(session_id, uses_topic_ids, now, partitions=partitions)
        self._sessions[session_id] = session
        return session

    def _evict(self, now: float) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.used_at < EVICTION_AGE_S:
            return False
        self.remove(oldest.session_id)
        return True


@dataclass(slots=True)
class FetchScope:
    """What one fetch request covers, and how its reply is put together."""

    cache: FetchSessionCache
    uses_topic_ids: bool
    now: float
    partitions: list[SessionPartition] = field(default_factory=list)
    session: FetchSession | None = None
    creates_session: bool = False
    error: ErrorCode = ErrorCode.NONE
    # The session's epoch after this request: another request of the same session must not have
    # come in between.
    expected_epoch: int = 0

    @property
    def has_sleepers(self) -> bool:
        session = self.session
        return session is not None and len(session.awake) < len(session.partitions)

    def response(self, results: Sequence[PartitionData | None]) -> Stepwise[FetchResponse]:
        session = self.session
        if session is not None and session.epoch != self.expected_epoch:
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
        # Partitions that can be read come first and keep their order, as in Kafka; then unknown
        # ids, then unknown partitions.
        answered: tuple[list[Answer], ...] = ([], [], [])
        for asked, result in zip(self.partitions, results, strict=True):
            if result is not None and (session is None or must_tell(asked, result)):
                answered[UNKNOWN_PARTITION.get(result.error_code, 0)].append((asked, result))
            yield None
        partitions: dict[PartitionKey, SessionPartition] = {}
        topics: list[FetchableTopicResponse] = []
        for asked, result in chain(*answered):
            if session is not None:
                if len(result.records or b""):
                    session.move_to_end(asked)
            elif self.creates_session:
                asked.told_high_watermark = result.high_watermark
                asked.told_log_start_offset = result.log_start_offset
                asked.rank = len(partitions)
                partitions[asked.key] = asked
            add_to_topic(topics, asked, result)
            yield None
        if session is None and self.creates_session:
            session = self.cache.create(partitions, self.uses_topic_ids, self.now)
        return FetchResponse(
            session_id=session.session_id if session is not None else INVALID_SESSION_ID,
            responses=topics,
        )


UNKNOWN_PARTITION: dict[int, int] = {
    ErrorCode.UNKNOWN_TOPIC_ID: 1,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 2,
}


def must_tell(asked: SessionPartition, result: PartitionData) -> bool:
    """Whether an incremental reply has to carry this partition; remembers what it says."""
    tell = len(result.records or b"") > 0 or result.diverging_epoch.end_offset >= 0
    if asked.told_high_watermark != result.high_watermark:
        asked.told_high_watermark = result.high_watermark
        tell = True
    if asked.told_log_start_offset != result.log_start_offset:
        asked.told_log_start_offset = result.log_start_offset
        tell = True
    if result.error_code != ErrorCode.NONE:
        # When the error goes away, the partition is told again.
        asked.told_high_watermark = -1
        tell = True
    return tell


def add_to_topic(
    topics: list[FetchableTopicResponse], asked: SessionPartition, result: PartitionData
) -> None:
    """Neighbours of one topic share one entry; the order of partitions stays."""
    if not topics or topics[-1].topic != asked.topic or topics[-1].topic_id != asked.topic_id:
        topics.append(FetchableTopicResponse(topic=asked.topic, topic_id=asked.topic_id))
    topics[-1].partitions.append(result)


def begin_fetch(
    cache: FetchSessionCache, request: FetchRequest, *, uses_topic_ids: bool, now: float
) -> Stepwise[FetchScope]:
    """Find out which partitions a request covers, and move its session on."""
    scope = FetchScope(cache, uses_topic_ids, now)
    asked = yield from asked_partitions(request)
    epoch = request.session_epoch
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        # A full request closes the session that it names.
        if request.session_id != INVALID_SESSION_ID:
            cache.remove(request.session_id)
        scope.partitions = list(asked.values())
        scope.creates_session = epoch == INITIAL_EPOCH
        return scope
    session = cache.get(request.session_id)
    if session is None:
        scope.error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    elif session.epoch != epoch:
        scope.error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
    elif session.uses_topic_ids != uses_topic_ids:
        scope.error = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    else:
        yield from continue_session(session, request, asked, scope)
    return scope


def continue_session(
    session: FetchSession,
    request: FetchRequest,
    asked: dict[PartitionKey, SessionPartition],
    scope: FetchScope,
) -> Stepwise[None]:
    # First of all, so that no other request can take the same step.
    session.epoch = session.next_epoch()
    scope.cache.touch(session, scope.now)
    scope.session = session
    scope.expected_epoch = session.epoch
    for key, partition in asked.items():
        yield None
        known = session.partitions.get(key)
        if known is None:
            session.add(partition)
        else:
            session.wake(known)
            known.fetch_offset = partition.fetch_offset
            known.max_bytes = partition.max_bytes
            known.current_leader_epoch = partition.current_leader_epoch
            known.last_fetched_epoch = partition.last_fetched_epoch
            known.log_start_offset = partition.log_start_offset
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.forget((topic.topic, topic.topic_id, index))
            yield None
    if session.partitions:
        scope.partitions = sorted(session.awake, key=by_rank)
    else:
        # Nothing is left to fetch: the session ends, and the request goes on without one.
        scope.cache.remove(session.session_id)
        scope.session = None
        scope.partitions = list(asked.values())


def asked_partitions(
    request: FetchRequest,
) -> Stepwise[dict[PartitionKey, SessionPartition]]:
    """The partitions of a request; of one that is named twice the last mention counts."""
    asked = {}
    for topic in request.topics:
        name, topic_id = topic.topic, topic.topic_id
        for partition in topic.partitions:
            asked[(name, topic_id, partition.partition)] = SessionPartition(
                name,
                topic_id,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                partition.log_start_offset,
            )
            yield None
    return asked

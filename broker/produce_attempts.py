"""What a produce request tries at each partition, before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from klamm.broker.steps import Stepwise, portions
from klamm.log.errors import LogError
from klamm.log.producer_state import VerificationGuard
from klamm.log.validate import OpenedRecords, open_records
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.produce import TopicProduceData
from klamm.wire.schema import Records

if TYPE_CHECKING:
    from klamm.broker.partition import Partition


class Attempt:
    """One partition of the request."""

    __slots__ = (
        "error",
        "guard",
        "index",
        "needs_opening",
        "opened",
        "partition",
        "records",
        "refused_beside",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.partition: Partition | None = None
        self.records: Records = b""
        self.needs_opening = False
        self.opened: OpenedRecords | None = None
        # Where the batch begins a transaction: proof that the coordinator knows of it.
        self.guard: VerificationGuard | None = None
        self.error: LogError | None = None
        # The partition was named twice and the other mention was refused: the reply says so.
        self.refused_beside: LogError | None = None

    def open_records(self, now_ms: int, decompressed_bytes_max: int) -> None:
        """Runs in a thread."""
        assert self.partition is not None
        try:
            self.opened = open_records(
                self.records,
                self.partition.log.config,
                now_ms=now_ms,
                decompressed_bytes_max=decompressed_bytes_max,
            )
        except LogError as error:
            self.error = error

    def replace(self, earlier: Attempt) -> Attempt:
        """What is left of two mentions of one partition, of which this is the later."""
        if self.error is None:
            self.refused_beside = earlier.refused_beside or earlier.error
            return self
        if earlier.error is None:
            earlier.refused_beside = self.error
            return earlier
        return earlier if self.error.code is ErrorCode.INVALID_REQUIRED_ACKS else self


TopicAttempts = list[tuple[TopicProduceData, list[Attempt]]]


def one_attempt_each(topics: TopicAttempts) -> Stepwise[TopicAttempts]:
    """Kafka keeps what a request brings in a map: of a partition that is named twice the last
    batch is written, unless it can't be, and a refusal is what the reply says."""
    if len(topics) == 1 and len(topics[0][1]) == 1:
        return topics
    kept: dict[tuple[str, UUID], tuple[TopicProduceData, dict[int, Attempt]]] = {}
    for topic, attempts in topics:
        _, by_index = kept.setdefault((topic.name, topic.topic_id), (topic, {}))
        for some in portions(attempts):
            for attempt in some:
                earlier = by_index.get(attempt.index)
                by_index[attempt.index] = attempt if earlier is None else attempt.replace(earlier)
            yield None
    return [(topic, list(by_index.values())) for topic, by_index in kept.values() if by_index]

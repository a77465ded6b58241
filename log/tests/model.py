"""A log as simple as it can be: a list of batches, and everything else found by looking at it."""

from dataclasses import dataclass

from klamm.wire.errors import ErrorCode

INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class ModelBatch:
    """A batch in the list."""

    base_offset: int
    values: tuple[bytes, ...]
    timestamps: tuple[int, ...]
    producer_id: int
    producer_epoch: int
    sequence: int
    leader_epoch: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + len(self.values) - 1

    @property
    def last_sequence(self) -> int:
        return (self.sequence + len(self.values) - 1) % (INT32_MAX + 1)

    @property
    def identity(self) -> tuple[int, int]:
        return self.sequence, self.last_sequence


class ModelLog:
    """The list, with the rules of idempotence written as questions to it."""

    def __init__(self) -> None:
        self.batches: list[ModelBatch] = []
        self.log_start_offset = 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def of_producer(self, producer_id: int) -> list[ModelBatch]:
        return [batch for batch in self.batches if batch.producer_id == producer_id]

    def window(self, producer_id: int) -> list[ModelBatch]:
        """The last five batches of the producer's newest epoch."""
        batches = self.of_producer(producer_id)
        epoch = batches[-1].producer_epoch if batches else None
        return [batch for batch in batches if batch.producer_epoch == epoch][-5:]

    def judge(
        self, producer_id: int, epoch: int, sequence: int, count: int
    ) -> ModelBatch | ErrorCode | None:
        """Return the batch that is repeated, the code of a refusal, or None for a new batch."""
        window = self.window(producer_id)
        if not window:
            return None
        last = window[-1]
        identity = (sequence, (sequence + count - 1) % (INT32_MAX + 1))
        if epoch == last.producer_epoch:
            for batch in window:
                if batch.identity == identity:
                    return batch
        if epoch < last.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        due = 0 if epoch > last.producer_epoch else (last.last_sequence + 1) % (INT32_MAX + 1)
        return None if sequence == due else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def truncate_to(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        self.log_start_offset = min(self.log_start_offset, self.end_offset)

    def records(self) -> list[tuple[int, bytes, int]]:
        """(offset, value, timestamp) of everything that may be read."""
        return [
            (batch.base_offset + index, value, timestamp)
            for batch in self.batches
            for index, (value, timestamp) in enumerate(
                zip(batch.values, batch.timestamps, strict=True)
            )
            if batch.base_offset + index >= self.log_start_offset
        ]

    def first_not_older_than(self, timestamp: int) -> tuple[int, int] | None:
        for offset, _, found in self.records():
            if found >= timestamp:
                return found, offset
        return None

    def epochs(self) -> list[tuple[int, int]]:
        """(epoch, first offset) of each leader epoch."""
        found: list[tuple[int, int]] = []
        for batch in self.batches:
            if not found or batch.leader_epoch > found[-1][0]:
                found.append((batch.leader_epoch, batch.base_offset))
        return found

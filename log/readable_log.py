"""What a log holds, for those who read it: batches, offsets by time, epochs, watermarks."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from klamm.log.config import LogConfig
from klamm.log.errors import CorruptLogError, LogError
from klamm.log.fs import NO_DESCRIPTORS
from klamm.log.layout import DELETED_SUFFIX
from klamm.log.loaded_log import LoadedLog
from klamm.log.log_read import LogRead, read_segments
from klamm.log.readiness import NotReady
from klamm.log.search import (
    AbortedTransaction,
    Search,
    TimestampAndOffset,
    collect_aborted_transactions,
    run_inline,
    search_max_timestamp,
    search_timestamp,
)
from klamm.wire.errors import ErrorCode

YieldT = TypeVar("YieldT")
ReturnT = TypeVar("ReturnT")


class ReadableLog:
    """The state of a log that readers see; what changes it is in PartitionLog.

    Attributes:
        config: replaced by update_config, at any time.
        log_start_offset: the first offset that may be read.
        log_end_offset: the offset that the next record gets.
        high_watermark: readers see nothing at or above it. Never decreases, except by truncation.
        is_offline: a write or read of the disk failed in a way that leaves the files unknown;
            appends are refused until a restart recovers the log.
        on_disk_error: told of it; other logs of the same disk may have to go offline, too.
    """

    def __init__(self, topic: str, partition: int, config: LogConfig, loaded: LoadedLog) -> None:
        self.topic = topic
        self.partition = partition
        self.config = config
        self.segments = loaded.local.segments
        self.producers = loaded.producers
        self.leader_epochs = loaded.leader_epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.high_watermark = loaded.high_watermark
        self.is_offline = False
        self.on_disk_error: Callable[[OSError], None] = _nobody_listens
        self._known_damage: set[tuple[str, int]] = set()

    def __repr__(self) -> str:
        return (
            f"PartitionLog({self.topic}-{self.partition}, start={self.log_start_offset},"
            f" end={self.log_end_offset}, high_watermark={self.high_watermark})"
        )

    @property
    def size_in_bytes(self) -> int:
        return self.segments.size_in_bytes

    @property
    def last_stable_offset(self) -> int:
        """Readers of committed data see nothing at or above this offset."""
        unstable = self.producers.first_unstable_offset
        if unstable is not None and unstable < self.high_watermark:
            return max(unstable, self.log_start_offset)
        return self.high_watermark

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upper_bound_offset: int | None = None,
        min_one_batch: bool = True,
        may_wait: bool = True,
    ) -> LogRead:
        """Return the bytes from the batch that holds offset on (see log_read.py).

        Args:
            max_bytes: where the bytes are cut.
            upper_bound_offset: nothing at or above it is returned; the log's end when not given.
            min_one_batch: return the first batch whole even when it is larger than max_bytes.
            may_wait: load and verify here what has to be, however long that takes.

        Raises:
            LogError: OFFSET_OUT_OF_RANGE, or KAFKA_STORAGE_ERROR when the disk fails.
            CorruptLogError: the first batch there is damaged.
            NotReady: there is something to load or verify first (see readiness.py).
        """
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise LogError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not in {self.log_start_offset}..{end_offset}",
            )
        if upper_bound_offset is None or upper_bound_offset > end_offset:
            upper_bound_offset = end_offset
        try:
            return read_segments(
                self.segments,
                offset,
                max_bytes,
                upper_bound_offset,
                end_offset,
                min_one_batch=min_one_batch,
                may_wait=may_wait,
            )
        except NotReady as unready:
            raise NotReady(self._guarded(unready.steps)) from None
        except OSError as error:
            raise self._refuse_read_after(error) from error

    def aborted_transactions(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap [fetch_offset, upper_bound_offset).

        Args:
            upper_bound_offset: LogRead.next_offset of what was read.
        """
        try:
            return collect_aborted_transactions(self.segments, fetch_offset, upper_bound_offset)
        except OSError as error:
            raise self._refuse_read_after(error) from error

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record that is not older than timestamp."""
        return run_inline(self.search_timestamp(timestamp))

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """Return the first record with the greatest timestamp; None when the log is empty."""
        return run_inline(self.search_max_timestamp())

    def search_timestamp(self, timestamp: int) -> Search:
        """offset_for_timestamp, for a caller that opens batches in a thread (see search.py)."""
        return self._guarded(search_timestamp(self.segments, timestamp, self.log_start_offset))

    def search_max_timestamp(self) -> Search:
        """offset_of_max_timestamp, for a caller that opens batches in a thread."""
        return self._guarded(search_max_timestamp(self.segments))

    def _guarded(self, steps: Generator[YieldT, Any, ReturnT]) -> Generator[YieldT, Any, ReturnT]:
        try:
            return (yield from steps)
        except OSError as error:
            raise self._refuse_read_after(error) from error

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """Return (largest known epoch not above this one, where it ends), or (-1, -1)."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def leader_epoch_of(self, offset: int) -> int:
        """Return the epoch that wrote the offset; -1 when it is not known."""
        epoch = self.leader_epochs.epoch_for_offset(offset)
        return -1 if epoch is None else epoch

    def _refuse_read_after(self, error: OSError) -> LogError:
        # A slow reader may find that its segment was deleted meanwhile; the log is well.
        is_deleted = str(error.filename).endswith(DELETED_SUFFIX)
        if error.errno not in NO_DESCRIPTORS and not is_deleted:
            self.fail(error)
        return LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"read failed: {error.strerror}")

    def is_news(self, damage: CorruptLogError) -> bool:
        """Say whether damage was not heard of before: readers find it again and again."""
        place = (damage.file, damage.position)
        if place in self._known_damage:
            return False
        self._known_damage.add(place)
        return True

    def fail(self, error: OSError) -> None:
        """Go offline until a restart recovers the log."""
        self.is_offline = True
        self.on_disk_error(error)


def _nobody_listens(error: OSError) -> None:
    pass

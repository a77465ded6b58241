"""Moving the start of logs, so that it never moves back, and DeleteRecords.

A log's start moves in three steps: it is announced, so that every checkpoint written from now on
holds it; the checkpoint is written and synced, in a thread; then the log begins there for its
readers. So whatever a reader or the sender of a DeleteRecords has seen survives a crash: the reply
leaves after the third step. Kafka moves the start first and writes the checkpoint within a minute.

A full disk has no room for a checkpoint, but what is being deleted would make room. Then the starts
move at once, the segments below them are removed without delay, and the checkpoint is written
afterwards.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from klamm.log.config import LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.errors import LogError
from klamm.log.fs import DISK_FULL
from klamm.log.layout import LOG_START_CHECKPOINT
from klamm.log.partition_log import PartitionLog
from klamm.log.work import Work
from klamm.wire.errors import ErrorCode

logger = logging.getLogger(__name__)

# What a client sends for "everything that may be read".
HIGH_WATERMARK = -1

Targets = Sequence[tuple[PartitionLog, int]]


class LogKeeper(Protocol):
    """Who writes the checkpoints of logs: a LogManager, or all LogDirectories of a broker."""

    @property
    def environment(self) -> LogEnvironment: ...

    def checkpoint_writer(self, names: Sequence[str]) -> Callable[[], None]: ...


def decide_log_start(offset: int, high_watermark: int, config: LogConfig) -> int:
    """Return where a DeleteRecords before that offset lets the log begin.

    Raises:
        LogError: POLICY_VIOLATION, the log is only compacted;
            OFFSET_OUT_OF_RANGE, the offset is negative or above the high watermark.
    """
    if config.compacts and not config.deletes:
        raise LogError(
            ErrorCode.POLICY_VIOLATION, "records can't be deleted because of the cleanup.policy"
        )
    target = high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= target <= high_watermark:
        raise LogError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is not between 0 and the high watermark {high_watermark}",
        )
    return target


def delete_records(
    keeper: LogKeeper, requests: Sequence[tuple[PartitionLog, int]]
) -> Work[list[int | LogError]]:
    """Delete the records before an offset from each log, with one checkpoint for all of them.

    Their segments are removed by the next run of retention.

    Returns:
        For each request the offset where its log begins now, which survives every crash, or why it
        was refused.
    """
    results: list[int | LogError] = []
    targets: list[tuple[PartitionLog, int]] = []
    for log, offset in requests:
        try:
            target = decide_log_start(offset, log.high_watermark, log.config)
        except LogError as refusal:
            results.append(refusal)
            continue
        results.append(target)
        if target > log.log_start_offset:
            targets.append((log, target))
    if targets:
        try:
            yield from move_log_starts(keeper, targets)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            full = LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk is full: {error.strerror}")
            moving = {log for log, _ in targets}
            return [
                full if log in moving and not isinstance(result, LogError) else result
                for (log, _), result in zip(requests, results, strict=True)
            ]
    return [
        result if isinstance(result, LogError) else _low_watermark(log, result)
        for (log, _), result in zip(requests, results, strict=True)
    ]


def _low_watermark(log: PartitionLog, target: int) -> int | LogError:
    if log.log_start_offset < target:
        return LogError(ErrorCode.KAFKA_STORAGE_ERROR, "the log is offline or was truncated")
    return log.log_start_offset


def move_log_starts(keeper: LogKeeper, targets: Targets) -> Work[int]:
    """Let logs begin at offsets that are not above their high watermarks.

    A log that was deleted or truncated meanwhile is left alone.

    Returns:
        How many segments were removed to make room.

    Raises:
        OSError: the checkpoint can't be written. Where the disk is not full, the caller halts.
    """
    for log, offset in targets:
        log.announce_log_start(offset)
    removed = 0
    try:
        yield keeper.checkpoint_writer((LOG_START_CHECKPOINT,))
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        logger.warning("the disk is full; segments are removed before their checkpoint is written")
        _increment(targets)
        removed = sum(_remove_segments(log) for log, _ in targets)
        yield keeper.environment.deletions.all()
        yield keeper.checkpoint_writer((LOG_START_CHECKPOINT,))
    _increment(targets)
    return removed


def _increment(targets: Targets) -> None:
    for log, offset in targets:
        # A truncation takes back what was announced.
        if not log.is_offline and log.log_start_to_checkpoint >= offset:
            log.increment_log_start_offset(offset)


def _remove_segments(log: PartitionLog) -> int:
    if log.is_offline or log.keeps_segments:
        return 0
    return log.remove_segments_below_log_start()

"""The life of the logs in the background: retention, compaction, and files that wait to be removed.

What to do is decided in `log/`; here is when it is done. Only one log is cared for at a time, in
turns with the event loop and in one thread: nobody waits for it, and it shall not be felt.

A full disk is no reason to stop: the next run goes on. Any other refusal of a disk takes its
directory offline, or halts the broker if that is the directory of the metadata log: files could be
in a state that nobody knows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from klamm.broker.config import ServerConfig
from klamm.broker.steps import StepRunner, Stepwise
from klamm.log.cleaner.cleaner import Cleaner, CleanerConfig
from klamm.log.cleaner.pace import Throttle
from klamm.log.directories import PASSING
from klamm.log.errors import CorruptLogError, LogError, StorageError
from klamm.log.fs import DISK_FULL
from klamm.log.retention import Retention
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Files are removed `file.delete.delay.ms` after they left their log, and up to this much later.
REMOVAL_INTERVAL_S = 1.0


class LogCare:
    """Looks after the logs of a broker."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        config = broker.config
        self._broker = broker
        self._nursery = nursery
        # Its own threads: a long compaction must not keep requests waiting for theirs.
        self._steps = StepRunner(nursery)
        self._retention = Retention(broker.logs)
        self._throttle = Throttle(config.log_cleaner_io_max_bytes_per_second)
        self._cleaner = Cleaner(broker.logs, self._throttle, cleaner_config(config))
        self._reconfigured = trio.Event()
        self._stopped = False

    def start(self) -> None:
        # A clock that is set before the first run has jumped, too.
        self._retention.may_run(self._broker.clock.now_ms(), _monotonic_ms())
        self._nursery.start_soon(self._delete_regularly)
        self._nursery.start_soon(self._remove_regularly)
        if self._broker.config.log_cleaner_enable:
            self._nursery.start_soon(self._compact_regularly)

    def reconfigure(self) -> None:
        """The settings of the broker have changed: compaction goes on with the new ones."""
        config = self._broker.config
        self._throttle.bytes_per_second = config.log_cleaner_io_max_bytes_per_second
        self._cleaner.config = cleaner_config(config)
        self._reconfigured.set()

    def stop(self) -> None:
        """Begin nothing more, and let a compaction under way end soon."""
        self._stopped = True
        for log in self._broker.logs:
            log.cancel_cleaning()

    async def _delete_regularly(self) -> None:
        config = self._broker.config
        await trio.sleep(config.log_initial_task_delay_ms / 1000)
        while True:
            await self._run(self.delete_old_segments)
            await trio.sleep(config.log_retention_check_interval_ms / 1000)

    async def _remove_regularly(self) -> None:
        while True:
            await trio.sleep(REMOVAL_INTERVAL_S)
            await self._run(self.remove_files)

    async def _compact_regularly(self) -> None:
        while True:
            with trio.move_on_after(self._broker.config.log_cleaner_backoff_ms / 1000):
                # Whoever shortens the pause does not want to wait for the end of a long one.
                await self._reconfigured.wait()
            self._reconfigured = trio.Event()
            await self._run(self.compact)

    async def _run(self, care: Callable[[], Awaitable[None]]) -> None:
        try:
            await care()
        except OSError as error:
            if error.errno in DISK_FULL or self._broker.logs.blame(error):
                logger.warning("the logs can't be looked after: %s", error)
            else:
                self._broker.halt(f"the logs can't be looked after: {error}")
        except (LogError, StorageError) as error:
            # That log is offline now, or damaged, and the others are served.
            logger.error("the logs can't be looked after: %s", error)

    async def delete_old_segments(self) -> None:
        """One run of retention over all logs."""
        clock = self._broker.clock
        if not self._retention.may_run(clock.now_ms(), _monotonic_ms()):
            return
        for log in self._user_logs():
            try:
                await self._delete_from(log)
            except LogError as error:
                logger.error("%s-%d is offline: %s", log.topic, log.partition, error)
            except CorruptLogError as error:
                # How old its segments are can't be told.
                if log.is_news(error):
                    logger.error("%s-%d keeps its segments: %s", log.topic, log.partition, error)
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise
                # That of another log may be what makes room.
                logger.warning("old segments of %s-%d stay: %s", log.topic, log.partition, error)

    async def _delete_from(self, log: PartitionLog) -> None:
        clock = self._broker.clock
        has_more = True
        while has_more and not self._stopped:
            removed = await self._look_after(
                log, self._retention.delete_old_segments(log, clock.now_ms())
            )
            has_more = removed.has_more

    async def compact(self) -> None:
        """Compact one log after the other until none is due."""
        while not self._stopped:
            now_ms = self._broker.clock.now_ms()
            if not self._cleaner.may_run(now_ms, _monotonic_ms()):
                return
            candidate = self._cleaner.choose(self._user_logs(), now_ms)
            if candidate is None:
                return
            log = candidate.log
            stats = await self._look_after(log, self._cleaner.clean(candidate, now_ms))
            if stats is None:
                return
            logger.info("%s-%d compacted: %s", log.topic, log.partition, stats)

    async def _look_after(self, log: PartitionLog, work: Stepwise[T]) -> T:
        """Work on one log. An error of its disk takes its directory offline, where that may go.

        Raises:
            LogError: KAFKA_STORAGE_ERROR, the log is offline.
            OSError: the disk is full, or the broker can't do without it.
        """
        try:
            return await self._steps.run(work)
        except OSError as error:
            if error.errno in PASSING or not self._broker.logs.can_spare(log):
                raise
            log.fail(error)
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def remove_files(self) -> None:
        """Remove the files whose time has come."""
        remove = self._broker.logs.environment.deletions.due(_monotonic_ms())
        if remove is not None:
            await trio.to_thread.run_sync(remove)

    def _user_logs(self) -> list[PartitionLog]:
        """All but the metadata log, whose records are never dropped."""
        return [partition.log for partition in self._broker.partitions]


def cleaner_config(config: ServerConfig) -> CleanerConfig:
    return CleanerConfig(
        config.log_cleaner_dedupe_buffer_size, config.log_cleaner_io_buffer_load_factor
    )


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000

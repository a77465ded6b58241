"""The life of the logs in the background: retention, compaction, and files that wait to be removed.

What to do is decided in `log/`; here is when it is done. Only one log is cared for at a time, in
turns with the event loop and in one thread: nobody waits for it, and it shall not be felt.

A full disk is no reason to stop: the next run goes on. Any other refusal of the disk halts the
broker where it could leave files in a state that nobody knows, as everywhere else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from klamm.broker.steps import StepRunner
from klamm.log.cleaner.cleaner import Cleaner, CleanerConfig
from klamm.log.cleaner.pace import Throttle
from klamm.log.errors import LogError
from klamm.log.fs import DISK_FULL
from klamm.log.retention import Retention

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

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
        self._cleaner = Cleaner(
            broker.logs,
            Throttle(config.log_cleaner_io_max_bytes_per_second),
            CleanerConfig(
                config.log_cleaner_dedupe_buffer_size, config.log_cleaner_io_buffer_load_factor
            ),
        )
        self._stopped = False

    def start(self) -> None:
        config = self._broker.config
        initial_s = config.log_initial_task_delay_ms / 1000
        retention_s = config.log_retention_check_interval_ms / 1000
        self._nursery.start_soon(self._repeat, self.delete_old_segments, initial_s, retention_s)
        self._nursery.start_soon(
            self._repeat, self.remove_files, REMOVAL_INTERVAL_S, REMOVAL_INTERVAL_S
        )
        if config.log_cleaner_enable:
            backoff_s = config.log_cleaner_backoff_ms / 1000
            self._nursery.start_soon(self._repeat, self.compact, backoff_s, backoff_s)

    def stop(self) -> None:
        """Begin nothing more, and let a compaction under way end soon."""
        self._stopped = True
        for log in self._broker.logs:
            log.cancel_cleaning()

    async def _repeat(
        self, run: Callable[[], Awaitable[None]], delay_s: float, interval_s: float
    ) -> None:
        await trio.sleep(delay_s)
        while True:
            try:
                await run()
            except OSError as error:
                if error.errno not in DISK_FULL:
                    self._broker.halt(f"the logs can't be looked after: {error}")
                    return
                logger.warning("the logs can't be looked after: %s", error)
            except LogError as error:
                # That log is offline now, and the others are served.
                logger.error("the logs can't be looked after: %s", error)
            await trio.sleep(interval_s)

    async def delete_old_segments(self) -> None:
        """One run of retention over all logs."""
        clock = self._broker.clock
        if not self._retention.may_run(clock.now_ms(), _monotonic_ms()):
            return
        for log in self._user_logs():
            has_more = True
            while has_more and not self._stopped:
                removed = await self._steps.run(
                    self._retention.delete_old_segments(log, clock.now_ms())
                )
                has_more = removed.has_more

    async def compact(self) -> None:
        """Compact one log after the other until none is due."""
        clock = self._broker.clock
        while not self._stopped:
            candidate = self._cleaner.choose(self._user_logs(), clock.now_ms())
            if candidate is None:
                return
            log = candidate.log
            stats = await self._steps.run(self._cleaner.clean(candidate, clock.now_ms()))
            if stats is None:
                return
            logger.info("%s-%d compacted: %s", log.topic, log.partition, stats)

    async def remove_files(self) -> None:
        """Remove the files whose time has come."""
        remove = self._broker.logs.environment.deletions.due(_monotonic_ms())
        if remove is not None:
            await trio.to_thread.run_sync(remove)

    def _user_logs(self) -> list[PartitionLog]:
        """All but the metadata log, whose records are never dropped."""
        return [partition.log for partition in self._broker.partitions]


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000

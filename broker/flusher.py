"""Group commit: one `fdatasync` answers every produce that waited for it.

Each log has at most one sync under way. Whatever is appended meanwhile waits for the next one, so
the number of syncs adapts to the disk and not to the number of requests. Several logs sync at the
same time, in a bounded number of threads.

A failed sync is never tried again: after an error the kernel may have dropped the dirty pages and
call the next sync a success (the fsync study of ATC 2020). The process halts, and recovery decides
from what is on disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import trio

from klamm.broker.reactor import TURN_SECONDS_MAX
from klamm.broker.timers import Timers
from klamm.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)


class LogSync:
    """The sync state of one log: who waits, and whether a sync is under way."""

    __slots__ = ("log", "running", "waiting")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.running = False
        self.waiting: list[Callable[[], None]] = []


class Flusher:
    """Syncs logs in threads and calls back when what was appended is on disk.

    Args:
        nursery: where syncs run.
        threads_max: how many logs sync at the same time.
        timers: for the logs that have `flush.ms`.
        halt: ends the process (or the embedded broker) after a failed sync.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        timers: Timers,
        threads_max: int,
        halt: Callable[[str], None],
    ) -> None:
        self._nursery = nursery
        self._timers = timers
        self._halt = halt
        self._limiter = trio.CapacityLimiter(threads_max)
        self._syncs: dict[PartitionLog, LogSync] = {}
        self._scheduled: set[PartitionLog] = set()

    def call_when_synced(self, log: PartitionLog, callback: Callable[[], None]) -> None:
        """Call back once everything that `log` holds now is on disk."""
        sync = self._syncs.get(log)
        if sync is None:
            sync = self._syncs[log] = LogSync(log)
        sync.waiting.append(callback)
        if not sync.running:
            sync.running = True
            self._nursery.start_soon(self._run, sync)

    def sync_soon(self, log: PartitionLog) -> None:
        """Sync without anybody waiting for it."""
        self.call_when_synced(log, _nobody_waits)

    def sync_within(self, log: PartitionLog, seconds: float) -> None:
        """Sync at the latest after that time; an earlier promise for the same log stands."""
        if log not in self._scheduled:
            self._scheduled.add(log)
            self._timers.call_after(seconds, lambda: self._scheduled_sync(log))

    def _scheduled_sync(self, log: PartitionLog) -> None:
        self._scheduled.discard(log)
        self.sync_soon(log)

    @property
    def is_idle(self) -> bool:
        """Nothing is being synced and nobody waits for it."""
        return not self._syncs

    async def wait_synced(self, log: PartitionLog) -> None:
        synced = trio.Event()
        self.call_when_synced(log, synced.set)
        await synced.wait()

    async def _run(self, sync: LogSync) -> None:
        log = sync.log
        while sync.waiting:
            waiting, sync.waiting = sync.waiting, []
            try:
                request = log.pending_sync()
                await trio.to_thread.run_sync(request.run, limiter=self._limiter)
            except OSError as error:
                self._halt(f"sync of {log.topic}-{log.partition} failed: {error}")
                return
            log.mark_synced(request)
            turn_ends_at = time.perf_counter() + TURN_SECONDS_MAX
            for callback in waiting:
                try:
                    callback()
                except Exception:
                    # The sync itself went well: one waiter's fault is not another's.
                    logger.exception("a fault in the broker after a sync")
                if time.perf_counter() > turn_ends_at:
                    await trio.lowlevel.checkpoint()
                    turn_ends_at = time.perf_counter() + TURN_SECONDS_MAX
        sync.running = False
        # The next sync may be far away: an entry is kept only while it is in use.
        del self._syncs[log]


def _nobody_waits() -> None:
    pass

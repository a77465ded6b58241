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
from collections.abc import Callable
from functools import partial

import trio

from klamm.broker.reactor import Reactor
from klamm.broker.sync_threads import SyncThreads
from klamm.broker.timers import Timers
from klamm.log.partition_log import PartitionLog
from klamm.log.sync import SyncRequest

logger = logging.getLogger(__name__)


class LogSync:
    """The sync state of one log: who waits for the next sync, and for the one under way."""

    __slots__ = ("log", "waiting")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.waiting: list[Callable[[], None]] = []


class Flusher:
    """Syncs logs in threads and calls back when what was appended is on disk.

    Args:
        reactor: where callbacks run.
        timers: for the logs that have `flush.ms`.
        threads_max: how many logs sync at the same time.
        halt: ends the process (or the embedded broker) after a failed sync.
    """

    def __init__(
        self,
        reactor: Reactor,
        timers: Timers,
        threads_max: int,
        halt: Callable[[str], None],
    ) -> None:
        self._reactor = reactor
        self._timers = timers
        self._halt = halt
        self._threads = SyncThreads(reactor, threads_max)
        # Logs that are being synced, or will be after this sweep.
        self._syncs: dict[PartitionLog, LogSync] = {}
        self._scheduled: set[PartitionLog] = set()

    def call_when_synced(self, log: PartitionLog, callback: Callable[[], None]) -> None:
        """Call back once everything that `log` holds now is on disk."""
        sync = self._syncs.get(log)
        if sync is None:
            sync = self._syncs[log] = LogSync(log)
            # After the sweep, so that one sync serves all that this sweep appends.
            self._reactor.call_after_sweep(partial(self._start, sync))
        sync.waiting.append(callback)

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
        if not log.is_offline:
            self.sync_soon(log)

    @property
    def is_idle(self) -> bool:
        """Nothing is being synced and nobody waits for it."""
        return not self._syncs

    async def wait_synced(self, log: PartitionLog) -> None:
        synced = trio.Event()
        self.call_when_synced(log, synced.set)
        await synced.wait()

    def close(self) -> None:
        self._threads.close()

    def _start(self, sync: LogSync) -> None:
        try:
            request = sync.log.pending_sync()
        except OSError as error:
            self._fail(sync.log, error)
            return
        waiting, sync.waiting = sync.waiting, []
        self._threads.submit(request.run, partial(self._ended, sync, request, waiting))

    def _ended(
        self,
        sync: LogSync,
        request: SyncRequest,
        waiting: list[Callable[[], None]],
        error: Exception | None,
    ) -> None:
        if error is not None:
            self._fail(sync.log, error)
            return
        sync.log.mark_synced(request)
        if sync.waiting:
            # First of all, so that the disk works while the answers are written.
            self._start(sync)
        else:
            # The next sync may be far away: an entry is kept only while it is in use.
            del self._syncs[sync.log]
        self._call(waiting)

    def _call(self, waiting: list[Callable[[], None]]) -> None:
        for count, callback in enumerate(waiting, 1):
            try:
                callback()
            except Exception:
                # The sync itself went well: one waiter's fault is not another's.
                logger.exception("a fault in the broker after a sync")
            if self._reactor.turn_is_over() and count < len(waiting):
                self._reactor.call_after_sweep(partial(self._call, waiting[count:]))
                return

    def _fail(self, log: PartitionLog, error: Exception) -> None:
        self._halt(f"sync of {log.topic}-{log.partition} failed: {error}")


def _nobody_waits() -> None:
    pass

"""Group commit: one `fdatasync` answers every produce that waited for it.

Each log has at most one sync under way. Whatever is appended meanwhile waits for the next one, so
the number of syncs adapts to the disk and not to the number of requests.

The logs of one disk are synced in rounds: what is due is ordered together, and the next round
begins when all of the last one is on disk. A file system writes its journal once for all that are
synced at the same time, so six files take twice as long as one, and six times as long one after the
other. Mostly there is only the active segment to sync, which the kernel does alone. Where names or
other files have changed, too, a thread does it, and no round waits for it; threads also stand in
where the kernel can't.

A failed sync is never tried again: after an error the kernel may have dropped the dirty pages and
call the next sync a success (the fsync study of ATC 2020). The process halts, and recovery decides
from what is on disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import trio

from klamm.broker.kernel_syncs import open_kernel_syncs
from klamm.broker.reactor import Reactor
from klamm.broker.sync_threads import Done, SyncThreads
from klamm.broker.timers import Timers
from klamm.log.partition_log import PartitionLog
from klamm.log.sync import SyncRequest

if TYPE_CHECKING:
    from klamm.log.fs import OsFile

logger = logging.getLogger(__name__)


# A round that takes longer than this holds the next one up no more: a log may have gigabytes that
# nobody has waited for so far.
ROUND_S_MAX = 0.02

Waiting: TypeAlias = list[Callable[[], None]]


class Round:
    """Syncs of one disk that were ordered together."""

    __slots__ = ("began_at", "left")

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        self.left = 0


class Disk:
    """The logs of one log directory.

    Attributes:
        due: those that will be synced in the next round.
        round: the one that the next has to wait for.
    """

    __slots__ = ("due", "round")

    def __init__(self) -> None:
        self.due: list[LogSync] = []
        self.round: Round | None = None


class LogSync:
    """A log that is due to be synced, or is being synced, and who waits for its next sync."""

    __slots__ = ("disk", "log", "waiting")

    def __init__(self, log: PartitionLog, disk: Disk) -> None:
        self.log = log
        self.disk = disk
        self.waiting: Waiting = []


class Flusher:
    """Syncs logs and calls back when what was appended is on disk.

    Args:
        reactor: where callbacks run.
        timers: for the logs that have `flush.ms`.
        threads_max: how many logs sync at the same time in threads.
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
        self._kernel = open_kernel_syncs(reactor)
        self._disks: dict[str, Disk] = {}
        # Logs that are being synced, or are due.
        self._syncs: dict[PartitionLog, LogSync] = {}
        # Callbacks of what is on disk now.
        self._answerable: deque[Callable[[], None]] = deque()
        self._is_called_after_sweep = False
        self._is_watching = False
        self._scheduled: set[PartitionLog] = set()

    def call_when_synced(self, log: PartitionLog, callback: Callable[[], None]) -> None:
        """Call back once everything that `log` holds now is on disk."""
        sync = self._syncs.get(log)
        if sync is None:
            directory = log.directory.rpartition("/")[0]
            disk = self._disks.get(directory)
            if disk is None:
                disk = self._disks[directory] = Disk()
            sync = self._syncs[log] = LogSync(log, disk)
            self._add_due(sync)
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
        return not self._syncs and not self._answerable

    async def wait_synced(self, log: PartitionLog) -> None:
        synced = trio.Event()
        self.call_when_synced(log, synced.set)
        await synced.wait()

    def close(self) -> None:
        self._threads.close()
        if self._kernel is not None:
            self._kernel.close()

    def _add_due(self, sync: LogSync) -> None:
        disk = sync.disk
        disk.due.append(sync)
        if disk.round is None:
            self._call_after_sweep()
        elif not self._is_watching:
            self._is_watching = True
            self._timers.call_after(ROUND_S_MAX, self._watch)

    def _call_after_sweep(self) -> None:
        """After the sweep, so that one sync serves all that this sweep appends."""
        if not self._is_called_after_sweep:
            self._is_called_after_sweep = True
            self._reactor.call_after_sweep(self._after_sweep)

    def _after_sweep(self) -> None:
        self._is_called_after_sweep = False
        # First of all, so that the disk works while the answers are written.
        for disk in self._disks.values():
            if disk.due and disk.round is None:
                self._begin_round(disk)
        answerable = self._answerable
        while answerable:
            try:
                answerable.popleft()()
            except Exception:
                # The sync itself went well: one waiter's fault is not another's.
                logger.exception("a fault in the broker after a sync")
            if answerable and self._reactor.turn_is_over():
                self._call_after_sweep()
                return

    def _begin_round(self, disk: Disk) -> None:
        due, disk.due = disk.due, []
        this = Round(self._reactor.now)
        ordered: list[tuple[OsFile, Done]] = []
        requests: list[SyncRequest] = []
        for sync in due:
            try:
                request = sync.log.pending_sync()
            except OSError as error:
                self._fail(sync.log, error)
                return
            waiting, sync.waiting = sync.waiting, []
            file = request.lone_file
            done = partial(self._ended, sync, request, waiting, None if file is None else this)
            if file is None:
                self._threads.submit(request.run, done)
            else:
                ordered.append((file, done))
                requests.append(request)
        if not ordered:
            return
        this.left = len(ordered)
        disk.round = this
        taken = 0 if self._kernel is None else self._kernel.submit(ordered)
        for index in range(taken, len(ordered)):
            self._threads.submit(requests[index].run, ordered[index][1])

    def _ended(
        self,
        sync: LogSync,
        request: SyncRequest,
        waiting: Waiting,
        its_round: Round | None,
        error: Exception | None,
    ) -> None:
        if error is not None:
            self._fail(sync.log, error)
            return
        sync.log.mark_synced(request)
        if its_round is not None:
            its_round.left -= 1
            if its_round.left == 0 and sync.disk.round is its_round:
                sync.disk.round = None
        if sync.waiting:
            self._add_due(sync)
        else:
            # The next sync may be far away: an entry is kept only while it is in use.
            del self._syncs[sync.log]
        self._answerable += waiting
        self._call_after_sweep()

    def _watch(self) -> None:
        """Let the next round begin where the last one takes very long."""
        self._is_watching = False
        now = trio.current_time()
        for disk in self._disks.values():
            if disk.due and disk.round is not None:
                if now - disk.round.began_at >= ROUND_S_MAX:
                    disk.round = None
                    self._call_after_sweep()
                elif not self._is_watching:
                    self._is_watching = True
                    self._timers.call_after(ROUND_S_MAX, self._watch)

    def _fail(self, log: PartitionLog, error: Exception) -> None:
        self._halt(f"sync of {log.topic}-{log.partition} failed: {error}")


def _nobody_waits() -> None:
    pass

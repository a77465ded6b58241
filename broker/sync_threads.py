"""Threads that wait for the disk, and give the result back to the event loop.

trio's own threads cost several turns of its scheduler for each call, which is more than a sync
takes on a fast disk. Here the way there is a queue, and the way back one event of the reactor for
all syncs that have ended meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

from klamm.broker.reactor import READABLE, Reactor, WakeUp

Work: TypeAlias = Callable[[], None]
Done: TypeAlias = Callable[[Exception | None], None]


class SyncThreads:
    """Runs work in at most so many threads, which are started when they are needed.

    Args:
        reactor: where `done` is called.
        threads_max: how much work runs at the same time.
    """

    def __init__(self, reactor: Reactor, threads_max: int) -> None:
        assert threads_max > 0
        self._threads_max = threads_max
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._work: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._ended: deque[tuple[Done, Exception | None]] = deque()
        self._wake_up = WakeUp(self._call_back)
        reactor.register(self._wake_up.fd, self._wake_up, READABLE)

    def submit(self, work: Work, done: Done) -> None:
        """Run `work` in a thread, then call `done` in the event loop with what it raised."""
        self._under_way += 1
        self._work.put((work, done))
        if self._under_way > len(self._threads) < self._threads_max:
            arguments = (self._work, self._ended, self._wake_up)
            thread = threading.Thread(target=_run, args=arguments, name="klamm-sync", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _call_back(self) -> None:
        ended = self._ended
        while ended:
            done, error = ended.popleft()
            self._under_way -= 1
            done(error)

    def close(self) -> None:
        """Let the threads end. Nobody waits for a sync that is still under way: after a halt its
        outcome does not matter any more."""
        for _ in self._threads:
            self._work.put(None)
        if not self._under_way:
            for thread in self._threads:
                thread.join()
        self._wake_up.close()


def _run(
    work_queue: SimpleQueue[tuple[Work, Done] | None],
    ended: deque[tuple[Done, Exception | None]],
    wake_up: WakeUp,
) -> None:
    while (task := work_queue.get()) is not None:
        work, done = task
        error = None
        try:
            work()
        except Exception as problem:
            error = problem
        ended.append((done, error))
        wake_up.set()
        # Nothing of the last task is kept alive while this thread waits for the next one.
        del task, work, done, error

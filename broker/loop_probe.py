"""How long one step of the event loop keeps all others waiting.

Measured in CPU seconds of the loop's own thread: a machine that is busy with something else makes
steps look long by the clock, and a test that fails for that reason teaches people to ignore it.
A virtual machine that stands still is not seen by that clock, and is taken for computing. The clock
of the timer's ticks does not go on then; but it is coarse, four milliseconds mostly. So a step is
as long as the one says that says less.

What blocks without computing (a sync, a cold read) does not belong on the loop either, and is not
seen here. Tests of the places that could block look at the thread that does it, or hold it up and
ask something else meanwhile (test_cold_fetch.py, test_flusher.py). The tests with real processes
would notice only a long one: they let other clients wait for a second, or for three.
"""

from __future__ import annotations

import time

import trio

# CPU time of this thread as the ticks of the kernel's timer find it running: CPUCLOCK_PROF of the
# thread 0, which is the caller; Python has no name for it.
TICKED = (~0 << 3) | 4


class LoopProbe(trio.abc.Instrument):
    """Remembers the longest step of any task since it was installed or reset."""

    def __init__(self) -> None:
        self.longest_step_s = 0.0
        self.longest_task = ""
        self._began_s = 0.0
        self._ticked_s = 0.0

    def reset(self) -> None:
        """Forget what was, including the part of the step under way: nobody waited for it."""
        self.longest_step_s = 0.0
        self.longest_task = ""
        self._begin()

    def _begin(self) -> None:
        self._began_s = time.thread_time()
        self._ticked_s = time.clock_gettime(TICKED)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._begin()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        took_s = time.thread_time() - self._began_s
        if took_s > self.longest_step_s:
            ticked_s = time.clock_gettime(TICKED) - self._ticked_s
            took_s = min(took_s, ticked_s)
            if took_s > self.longest_step_s:
                self.longest_step_s = took_s
                self.longest_task = task.name

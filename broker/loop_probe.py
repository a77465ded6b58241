"""How long one step of the event loop keeps all others waiting.

Measured in CPU seconds of the loop's own thread: a machine that is busy with something else makes
steps look long by the clock, and a test that fails for that reason teaches people to ignore it.
What blocks without computing (a sync, a cold read) does not belong on the loop either; the tests
with real processes see it as the latency of other clients.
"""

from __future__ import annotations

import time

import trio


class LoopProbe(trio.abc.Instrument):
    """Remembers the longest step of any task since it was installed or reset."""

    def __init__(self) -> None:
        self.longest_step_s = 0.0
        self.longest_task = ""
        self._began_s = 0.0

    def reset(self) -> None:
        """Forget what was, including the part of the step under way: nobody waited for it."""
        self.longest_step_s = 0.0
        self.longest_task = ""
        self._began_s = time.thread_time()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began_s = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        took_s = time.thread_time() - self._began_s
        if took_s > self.longest_step_s:
            self.longest_step_s = took_s
            self.longest_task = task.name

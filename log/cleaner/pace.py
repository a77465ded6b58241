"""How fast a compaction runs: not faster than it may, and never so that others starve."""

import threading
import time
from collections.abc import Callable

from klamm.log.cleaner.cancellation import Cancellation

# After so much work the thread lets go of the interpreter for a moment. It would be asked to do so
# only every five milliseconds, and the event loop would wait as long for each of its steps.
TURN_S = 0.001
PAUSE_S = 0.00005
# Time that was not used in a calm is not made up for later, beyond this.
BURST_S = 0.3


class Throttle:
    """A bound on bytes per second, shared by all threads that compact.

    Args:
        bytes_per_second: log.cleaner.io.max.bytes.per.second; what is read and written counts.
        clock: seconds that never jump.
    """

    def __init__(
        self, bytes_per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        assert bytes_per_second > 0
        self.bytes_per_second = bytes_per_second
        self._clock = clock
        self._lock = threading.Lock()
        # When all that was let through so far would be done at exactly that rate.
        self._done_at = clock()

    def delay_s(self, byte_count: int) -> float:
        """Note that so many bytes were moved; return how long to wait before the next ones."""
        with self._lock:
            now = self._clock()
            done_at = max(self._done_at, now - BURST_S) + byte_count / self.bytes_per_second
            self._done_at = done_at
            return max(0.0, done_at - now)


class Pace:
    """What a compaction calls after every batch.

    Args:
        throttle: the bound.
        cancellation: looked at each time.
        clock: seconds that never jump.
    """

    def __init__(
        self,
        throttle: Throttle,
        cancellation: Cancellation,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._throttle = throttle
        self._cancellation = cancellation
        self._clock = clock
        self._byte_count = 0
        self._turn_ends_at = clock() + TURN_S

    def check(self) -> None:
        """Raise CleaningAborted when the compaction is to end."""
        self._cancellation.check()

    def moved(self, byte_count: int) -> None:
        """Note that so many bytes were read or written, and wait if need be.

        Raises:
            CleaningAborted: the compaction is to end.
        """
        self._byte_count += byte_count
        if self._clock() < self._turn_ends_at:
            return
        delay_s = self._throttle.delay_s(self._byte_count)
        self._byte_count = 0
        self._cancellation.wait(max(delay_s, PAUSE_S))
        self._turn_ends_at = self._clock() + TURN_S

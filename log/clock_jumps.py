"""Noticing that the wall clock was set.

What expires by the wall clock (segments by `retention.ms`, tombstones by their delete horizon) must
not go in a burst because somebody set the clock, or because a virtual machine came back from a
pause. The wall clock and a monotonic clock run alike; when their difference has changed, one of
them has jumped, and it was not the monotonic one. Whoever deletes by the wall clock then waits:
retention skips one run, and compaction, whose runs are seconds apart, PAUSE_MS. That leaves time to
set the clock right. If it stays as it is, it is believed.
"""

# Corrections by NTP are a thousandth of this between two runs.
JUMP_MS_MIN = 60_000
# As long as retention pauses between two runs by default.
PAUSE_MS = 300_000


def has_jumped(earlier_drift_ms: int | None, drift_ms: int) -> bool:
    """Say whether wall minus monotonic time has changed by more than clocks drift."""
    return earlier_drift_ms is not None and abs(drift_ms - earlier_drift_ms) >= JUMP_MS_MIN


class ClockJumps:
    """The memory of the last run; without one, nothing is known to have jumped."""

    def __init__(self) -> None:
        self._drift_ms: int | None = None

    def notice(self, wall_ms: int, monotonic_ms: int) -> bool:
        """Say whether the wall clock has jumped since the last call."""
        earlier_drift_ms, self._drift_ms = self._drift_ms, wall_ms - monotonic_ms
        return has_jumped(earlier_drift_ms, self._drift_ms)

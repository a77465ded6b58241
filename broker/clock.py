"""Wall time, for what is stored and shown. Deadlines use trio's monotonic clock instead."""

from __future__ import annotations

import time


class Clock:
    """Milliseconds since 1970; tests replace it."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

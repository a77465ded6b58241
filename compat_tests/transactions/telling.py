"""What the processes of a workload tell: events of a history, one line each, on standard output.

A line is out before what it speaks of is tried, so that a killed process has told everything that
it may have done. Times are those of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import replace

from compat_tests.history.events import Event

READY = "ready"

# Set when the process is asked to end after what it is about.
stopping = threading.Event()


def tell(event: Event) -> None:
    print(replace(event, time=time.monotonic()).line(), flush=True)


def tell_ready() -> None:
    print(READY, flush=True)


def stop_when_asked() -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())


def die(why: object) -> None:
    """End because of an error: a successor looks what has become of the transaction."""
    print(why, file=sys.stderr, flush=True)
    sys.exit(3)

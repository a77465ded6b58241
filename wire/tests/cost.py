"""What decoding costs, in lines of Python that run and bytes that are held.

Not in seconds, so that a busy machine changes nothing.
"""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

from klamm.wire.errors import WireError


def steps_of(decode: Callable[[], object]) -> int:
    """Count the lines of Python that decoding runs, whatever comes of it."""
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        decode()
    except WireError:
        pass
    finally:
        sys.settrace(before)
    return steps


def peak_of(decode: Callable[[], object]) -> int:
    """Give the most memory that decoding holds at a time."""
    tracemalloc.start()
    try:
        decode()
    except WireError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak

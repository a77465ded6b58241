"""Short garbage collections: what a broker keeps is not walked over again and again.

A full collection looks at every object of the process, and holds up everything meanwhile. A broker
with thousands of partitions has hundreds of thousands of objects that stay as long as it runs. So
whatever is left after a full collection that took long is set apart (`gc.freeze`): what is in no
cycle is still freed as soon as nobody uses it.

Python waits for 70,000 new objects before it collects in full, and one request can bring more. So
that this, too, is short, full collections come five times as often; each sees only what is new.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

FULL_COLLECTION_S_MAX = 0.005
OLDEST_GENERATION = 2
# Python's own is 10.
MIDDLE_COLLECTIONS_PER_FULL = 2


def set_apart() -> None:
    """Let collections pass over everything that is there now."""
    gc.freeze()
    # The next full collection waits for a quarter of what the last one has seen: now, for little.
    gc.collect()


@contextmanager
def no_collections() -> Iterator[None]:
    """Collect nothing while modules are imported, and set apart what they are made of: to look for
    garbage in it again and again is an eighth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def short_collections() -> Iterator[None]:
    """Set apart what makes full collections long, while the block runs."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], MIDDLE_COLLECTIONS_PER_FULL)
    began_s = 0.0

    def watch(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        nonlocal began_s
        if info["generation"] != OLDEST_GENERATION:
            return
        if phase == "start":
            began_s = time.thread_time()
        elif time.thread_time() - began_s > FULL_COLLECTION_S_MAX:
            gc.freeze()

    gc.callbacks.append(watch)
    try:
        yield
    finally:
        gc.callbacks.remove(watch)
        gc.set_threshold(*thresholds)

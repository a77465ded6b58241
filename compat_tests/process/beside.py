"""Clients in threads of their own, beside what a test does to the broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compat_tests.clients.streaming import STOP_TIMEOUT_S
from compat_tests.history.recorder import History


@contextmanager
def beside(name: str, history: History, work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Work in a thread until the block ends.

    Args:
        name: who does not stop, if it does not.
        history: learns when the work fails.
        work: goes on until the event is set.
    """
    stopping = threading.Event()

    def run() -> None:
        try:
            work(stopping)
        except BaseException as failure:
            history.fail(failure)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(STOP_TIMEOUT_S)
    if thread.is_alive():
        raise TimeoutError(f"{name} does not stop")

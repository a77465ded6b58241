"""What the leader of a partition says of its log, again and again, while something happens to it.

Now and then the log is made to begin later, so that its start is seen to move, too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from compat_tests.history.events import Event
from compat_tests.history.recorder import History
from compat_tests.process.asking import Asker
from compat_tests.process.beside import beside
from compat_tests.twin.codec import Plain

PROCESS = "sampler"
PAUSE_S = 0.05
SAMPLES_BETWEEN_DELETIONS = 5
# Deleted are only records that the follower of the same history has left well behind.
RECORDS_KEPT = 100

LIST_OFFSETS_VERSION, DELETE_RECORDS_VERSION = 7, 2
EARLIEST, LATEST = -2, -1
ALL, COMMITTED = 0, 1


@contextlib.contextmanager
def sampling(bootstrap: str, topic: str, history: History) -> Iterator[None]:
    """Ask for the watermarks of partition 0 until the block ends."""

    def work(stopping: threading.Event) -> None:
        while not stopping.wait(PAUSE_S):
            # A broker that is away gives no answer.
            with contextlib.suppress(OSError), Asker(bootstrap) as asker:
                _sample(asker, topic, history, stopping)

    with beside("the sampler", history, work):
        yield


def _sample(asker: Asker, topic: str, history: History, stopping: threading.Event) -> None:
    while True:
        marks = watermarks(asker, topic)
        if marks is not None:
            history.record(marks)
            is_due = history.count(marks.action) % SAMPLES_BETWEEN_DELETIONS == 0
            if is_due and not stopping.is_set():
                _delete(asker, topic, history.count("poll") - RECORDS_KEPT)
                # The last deletion, too, is seen.
                continue
        if stopping.wait(PAUSE_S):
            return


def watermarks(asker: Asker, topic: str) -> Event | None:
    """The marks of partition 0 now; None while nobody leads it.

    The lower ones are asked for first, so that none has passed the next when that is told.
    """
    start = _offset(asker, topic, EARLIEST, ALL)
    stable = _offset(asker, topic, LATEST, COMMITTED)
    high = _offset(asker, topic, LATEST, ALL)
    if start is None or stable is None or high is None:
        return None
    return Event(
        "ok",
        "watermarks",
        PROCESS,
        leader_epoch=high["leader_epoch"],
        log_start=start["offset"],
        last_stable=stable["offset"],
        high_watermark=high["offset"],
    )


def _offset(asker: Asker, topic: str, timestamp: int, isolation: int) -> Plain | None:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    body = {
        "replica_id": -1,
        "isolation_level": isolation,
        "topics": [{"name": topic, "partitions": [partition]}],
    }
    (answer,) = asker.ask("list_offsets", LIST_OFFSETS_VERSION, body)["topics"]
    (held,) = answer["partitions"]
    return held if held["error_code"] == "none" else None


def _delete(asker: Asker, topic: str, offset: int) -> None:
    """Whether that succeeds is seen by the next sample."""
    if offset > 0:
        partition = {"partition_index": 0, "offset": offset}
        body = {"topics": [{"name": topic, "partitions": [partition]}], "timeout": 10_000}
        asker.ask("delete_records", DELETE_RECORDS_VERSION, body)

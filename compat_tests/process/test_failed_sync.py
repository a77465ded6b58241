"""A sync that fails: the process halts with its own exit code, and nothing is acknowledged after.

What was not synced is dropped by the failing disk, and a second attempt would be told that all is
well. So an acknowledgement that the failed sync did not cover is seen as a lost record.
"""

from __future__ import annotations

import contextlib
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.history.recorder import History
from compat_tests.history.rules import violations
from compat_tests.process.clients import IDEMPOTENT, producing, read_all
from compat_tests.process.faults import (
    FaultyKlamm,
    SyncedBy,
    kernel_has,
    with_failing_sync,
)
from compat_tests.twin.batches import R, batch

EXIT_HALTED = 70
ROUNDS = 3
RECORDS = 200
API_CREATE_TOPICS = 19


@pytest.fixture(params=["threads", "ring", "aio"])
def klamm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultyKlamm]:
    by: SyncedBy = request.param
    if not kernel_has(by):
        pytest.skip(f"the kernel of this machine takes no orders by {by}")
    process = with_failing_sync(tmp_path / "data", by)
    yield process
    process.kill()


def halted(klamm: FaultyKlamm) -> str:
    """The one line with which the process halted."""
    assert klamm.wait_for_end()[0] == EXIT_HALTED
    assert not klamm.is_on, "no sync failed"
    assert not klamm.is_marked_clean
    (line,) = klamm.complaints()
    assert line.startswith("halting: ")
    assert "Input/output error" in line or "the kernel has lost the order" in line
    return line


def test_acknowledged_records_survive(klamm: FaultyKlamm) -> None:
    klamm.start()
    create_topic(klamm.bootstrap, "topic")
    history = History(idempotent=True)
    with producing(klamm.bootstrap, "topic", history, IDEMPOTENT):
        for _ in range(ROUNDS):
            history.wait_for_more("ok", RECORDS)
            klamm.switch_on()
            assert "sync of topic-0 failed" in halted(klamm)
            klamm.output_path.unlink()
            klamm.start()
        history.wait_for_more("ok", RECORDS)
    assert history.count("unknown") == 0
    history.add_log(read_all(klamm.bootstrap, "topic"))
    assert violations(history.events()) == []


@pytest.mark.parametrize("klamm", ["threads", "ring", "aio", "lost orders"], indirect=True)
def test_no_reply_to_requests_under_way(klamm: FaultyKlamm) -> None:
    """All connections end, also those of logs whose own sync did not fail."""
    klamm.start()
    for topic in ("one", "two"):
        create_topic(klamm.bootstrap, topic)
        assert raw.produce(klamm.bootstrap, topic, batch(R(b"before"))) == (0, 0)
    with raw.connect(klamm.bootstrap) as first, raw.connect(klamm.bootstrap) as second:
        klamm.switch_on()
        # In one go: the process may have ended before a second call.
        first.sendall(request_to("one") * 3)
        with pytest.raises((EOFError, ConnectionError)):
            raw.read_reply(first)
        with contextlib.suppress(ConnectionError):
            second.sendall(request_to("two"))
        with pytest.raises((EOFError, ConnectionError)):
            raw.read_reply(second)
    halted(klamm)
    klamm.is_faulty = False
    klamm.start()
    for topic in ("one", "two"):
        assert read_all(klamm.bootstrap, topic)[0] == (0, "before")
        error, offset = raw.produce(klamm.bootstrap, topic, batch(R(b"after")))
        assert error == 0
        assert read_all(klamm.bootstrap, topic)[-1] == (offset, "after")


def request_to(topic: str) -> bytes:
    body = raw.produce_body(topic, batch(R(b"lost")))
    return raw.request_frame(raw.API_PRODUCE, raw.PRODUCE_VERSION, body)


def test_topic_that_could_not_be_made_durable(klamm: FaultyKlamm) -> None:
    klamm.start()
    create_topic(klamm.bootstrap, "before")
    klamm.switch_on()
    with pytest.raises((EOFError, ConnectionError)):
        raw.call(klamm.bootstrap, API_CREATE_TOPICS, 2, create_topic_body("new"))
    halted(klamm)
    klamm.start()
    assert raw.list_offset(klamm.bootstrap, "before", 0, -1) == (0, 0)
    # The client was told nothing, so the topic may be there or not; it can be used or made.
    if raw.list_offset(klamm.bootstrap, "new", 0, -1)[0] != 0:
        create_topic(klamm.bootstrap, "new")
    assert raw.produce(klamm.bootstrap, "new", batch()) == (0, 0)


def create_topic_body(name: str) -> bytes:
    """CreateTopics v2 for one topic with one partition."""
    topic = struct.pack(">h", len(name)) + name.encode() + struct.pack(">ihii", 1, 1, 0, 0)
    return struct.pack(">i", 1) + topic + struct.pack(">ib", 30_000, 0)


@pytest.mark.parametrize("klamm", ["threads", "itself"], indirect=True)
def test_shutdown_that_could_not_be_made_durable(klamm: FaultyKlamm) -> None:
    """The directory is not called clean, so the next start recovers.

    The last syncs are never orders: nothing is left to do meanwhile.
    """
    klamm.start()
    create_topic(klamm.bootstrap, "topic")
    assert raw.produce(klamm.bootstrap, "topic", batch(R(b"synced"))) == (0, 0)
    assert raw.produce(klamm.bootstrap, "topic", batch(R(b"not synced")), acks=1) == (0, 1)
    klamm.switch_on()
    klamm.send_signal(signal.SIGTERM)
    halted(klamm)
    klamm.start()
    assert read_all(klamm.bootstrap, "topic")[0] == (0, "synced")

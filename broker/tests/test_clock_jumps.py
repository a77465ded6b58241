"""The wall clock is set ahead under a running broker: nothing goes that was to stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import pytest

from klamm.broker.clock import Clock
from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic, produce_to
from klamm.broker.tests.test_log_care import EAGER, SEGMENT, earliest, readable_offsets
from klamm.broker.tests.waiting import until
from klamm.wire.errors import ErrorCode
from klamm.wire.records.record import build_batch

DAY_MS = 86_400_000
PADDING = b"x" * 400


@pytest.fixture
def set_ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], int]], None]:
    real = Clock.now_ms

    def set_ahead(days: Callable[[], int]) -> None:
        monkeypatch.setattr(Clock, "now_ms", lambda self: real(self) + days() * DAY_MS)

    return set_ahead


def write(client: RawClient, key: bytes, value: bytes | None) -> None:
    records = build_batch([(key, value, (), time.time_ns() // 1_000_000)])
    assert produce_to(client, "topic", records).error_code == ErrorCode.NONE


def test_retention_skips_a_run_after_each_jump(
    set_ahead: Callable[[Callable[[], int]], None], caplog: pytest.LogCaptureFixture
) -> None:
    """A clock that jumps all the time is never believed; one that has jumped once is."""
    days = count(1)
    set_ahead(lambda: next(days))
    with running_broker(properties=EAGER) as broker, RawClient(broker) as client:
        create_topic(client, "topic", configs={**SEGMENT, "retention.ms": "3600000"})
        for _ in range(6):
            write(client, b"key", PADDING)
        caplog.clear()
        until(lambda: caplog.text.count("retention skips one run") > 2)
        assert earliest(client, "topic") == 0
        set_ahead(lambda: 1000)
        until(lambda: earliest(client, "topic") == 6)


def test_retention_remembers_the_clock_of_the_start(
    set_ahead: Callable[[Callable[[], int]], None], caplog: pytest.LogCaptureFixture
) -> None:
    with running_broker(properties={**EAGER, "log.initial.task.delay.ms": "500"}):
        set_ahead(lambda: 1)
        until(lambda: "retention skips one run" in caplog.text)


def test_compaction_pauses_after_a_jump(
    set_ahead: Callable[[Callable[[], int]], None], caplog: pytest.LogCaptureFixture
) -> None:
    with running_broker(properties=EAGER) as broker, RawClient(broker) as client:
        configs = {**SEGMENT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        create_topic(client, "topic", configs=configs)
        write(client, b"deleted", None)
        for _ in range(5):
            write(client, b"key", PADDING)
        # The tombstone has its horizon, a day from now.
        until(lambda: len(readable_offsets(client, "topic", 6)) < 6)
        set_ahead(lambda: 2)
        for _ in range(6):
            write(client, b"key", PADDING)
        until(lambda: "compaction pauses" in caplog.text)
        assert readable_offsets(client, "topic", 12)[0] == 0


def test_no_producer_is_forgotten(set_ahead: Callable[[Callable[[], int]], None]) -> None:
    properties = {"producer.id.expiration.check.interval.ms": "10"}
    with running_broker(properties=properties) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        (partition,) = broker.broker.partitions
        producers = partition.log.producers.entries
        now_ms = time.time_ns() // 1_000_000
        set_ahead(lambda: 2)
        for producer_id, timestamp in ((1, now_ms), (2, now_ms - 2 * DAY_MS)):
            identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
            records = build_batch([(b"key", b"", (), timestamp)], **identity)
            assert produce_to(client, "topic", records).error_code == ErrorCode.NONE
        # One that is really idle goes, so somebody has looked.
        until(lambda: 2 not in producers)
        assert list(producers) == [1]

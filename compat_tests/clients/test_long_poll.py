"""A consumer that waits gets a record when it comes, not when its time is over."""

from __future__ import annotations

import threading
import time

import pytest

from compat_tests.clients.fixtures import Broker, ClientNamed, MakeTopic
from compat_tests.clients.model import Client, Received, Record

# Longer than the drivers wait for messages: a broker that answers only when the time is over
# makes the test fail, however slow the machine is.
WAIT_MS = 90_000


class Reading:
    """Reads in a thread, so that the test can write while the consumer waits."""

    def __init__(
        self, client: Client, bootstrap: str, topic: str, count: int, *, fetch_bytes_min: int = 1
    ) -> None:
        self._result: list[Received] = []
        self._failure: BaseException | None = None

        def read() -> None:
            try:
                self._result = client.consume(
                    *(bootstrap, topic, count),
                    fetch_wait_ms=WAIT_MS,
                    fetch_bytes_min=fetch_bytes_min,
                )
            except BaseException as failure:
                self._failure = failure

        self._thread = threading.Thread(target=read, daemon=True)
        self._thread.start()

    def result(self) -> list[Received]:
        self._thread.join(60)
        assert not self._thread.is_alive(), "the consumer still waits"
        if self._failure is not None:
            raise self._failure
        return self._result


@pytest.mark.parametrize("reader", ["confluent-kafka", "kcat"])
def test_a_record_ends_the_wait(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, reader: str
) -> None:
    topic = make_topic()
    reading = Reading(client_named(reader), broker.bootstrap, topic, 1)
    time.sleep(1)
    client_named("kafka-python").produce(broker.bootstrap, topic, [Record(b"at last")])
    assert [one.value for one in reading.result()] == [b"at last"]


@pytest.mark.parametrize("reader", ["confluent-kafka", "kcat"])
def test_the_wait_goes_on_until_there_is_enough(
    broker: Broker, make_topic: MakeTopic, client_named: ClientNamed, reader: str
) -> None:
    topic = make_topic()
    writer = client_named("kafka-python")
    reading = Reading(client_named(reader), broker.bootstrap, topic, 3, fetch_bytes_min=5_000)
    writer.produce(broker.bootstrap, topic, [Record(b"a" * 100)])
    writer.produce(broker.bootstrap, topic, [Record(b"b" * 100)])
    writer.produce(broker.bootstrap, topic, [Record(b"c" * 5_000)])
    assert [one.value[:1] for one in reading.result() if one.value] == [b"a", b"b", b"c"]

"""Requests that are made to go wrong, and real clients that cope with it."""

from __future__ import annotations

import socket
import struct
import time
import warnings
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import (
    PRODUCE_VERSION,
    RawClient,
    create_topic,
    fetch_from,
    produce,
    produce_to,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.header import RequestHeader
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.produce import ProduceRequest

# kafka-python reads its schemas, while it is imported, with a function that Python 3.11 calls
# deprecated.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

TIMEOUT_S = 20


# --- what a hook does ---


@pytest.fixture
def topic(client: RawClient) -> str:
    create_topic(client, "topic")
    return "topic"


def test_fail_answers_with_the_error_and_does_not_handle_the_request(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    broker.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for _ in range(3):
        assert produce_to(client, topic).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.clear_hooks()
    assert produce_to(client, topic).base_offset == 0


def test_times_counts_requests(broker: RunningBroker, client: RawClient, topic: str) -> None:
    broker.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR, times=2)
    codes = [produce_to(client, topic).error_code for _ in range(4)]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2 + [ErrorCode.NONE] * 2


def test_hooks_are_used_up_in_the_order_they_were_set_in(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    broker.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR, times=1)
    broker.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=1)
    codes = [produce_to(client, topic).error_code for _ in range(3)]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]


def test_matches_chooses_by_header_and_request(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    create_topic(client, "other")

    def is_for_other(header: RequestHeader, request: Any) -> bool:
        assert header.client_id == "raw"
        assert isinstance(request, ProduceRequest)
        return request.topic_data[0].name == "other"

    broker.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR, times=1, matches=is_for_other)
    assert produce_to(client, topic).error_code == 0
    assert produce_to(client, "other").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce_to(client, "other").error_code == 0


def test_other_apis_are_not_touched(broker: RunningBroker, client: RawClient, topic: str) -> None:
    broker.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR)
    assert fetch_from(client, topic).error_code == 0


def test_drop_closes_the_connection_and_does_not_handle_the_request(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    broker.drop("Produce", times=1)
    client.send(produce(topic), version=PRODUCE_VERSION)
    assert client.is_closed_by_peer()
    with RawClient(broker) as again:
        assert produce_to(again, topic).base_offset == 0


def test_delay_holds_up_the_request_and_what_follows_it(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    broker.delay("Produce", 0.3, times=1)
    began = time.monotonic()
    client.send(produce(topic), version=PRODUCE_VERSION)
    client.send(ApiVersionsRequest(), version=0)
    with RawClient(broker) as other:
        # Others are not held up; and nothing is in the log yet.
        assert fetch_from(other, topic).high_watermark == 0
    assert client.receive()[0] == client.sent - 1
    assert time.monotonic() - began >= 0.3
    assert client.receive()[0] == client.sent


def test_a_delayed_request_whose_client_has_gone_is_not_handled(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    broker.delay("Produce", 0.2, times=1)
    with RawClient(broker) as gone:
        gone.send(produce(topic), version=PRODUCE_VERSION)
        while broker.broker.dispatcher.interceptors.active:
            client.call(ApiVersionsRequest(), 0)
        # It does not just say goodbye, it breaks the connection.
        gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.4)
    assert fetch_from(client, topic).high_watermark == 0


def test_an_api_that_does_not_exist_is_refused(broker: RunningBroker) -> None:
    with pytest.raises(ValueError, match="'Prduce' is no API"):
        broker.fail("Prduce", ErrorCode.KAFKA_STORAGE_ERROR)


def test_every_api_can_be_failed(broker: RunningBroker, client: RawClient) -> None:
    for route in broker.broker.dispatcher.routes.values():
        broker.fail(route.name, ErrorCode.REQUEST_TIMED_OUT, times=1)
    assert client.call(ApiVersionsRequest(), 0).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_an_error_is_one_by_its_number_too(
    broker: RunningBroker, client: RawClient, topic: str
) -> None:
    broker.fail("Produce", 87)
    assert produce_to(client, topic).error_code == ErrorCode.INVALID_RECORD
    with pytest.raises(ValueError, match="12345"):
        broker.fail("Produce", 12345)


@pytest.mark.parametrize("times", [0, -1])
def test_a_hook_is_for_one_request_at_least(broker: RunningBroker, times: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        broker.drop("Produce", times=times)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_keeps_hooks(broker: RunningBroker, is_clean: bool) -> None:
    with RawClient(broker) as client:
        create_topic(client, "topic")
        broker.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR, times=2)
        assert produce_to(client, "topic").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    if is_clean:
        broker.restart()
    else:
        broker.kill()
        broker.start()
    with RawClient(broker) as client:
        codes = [produce_to(client, "topic").error_code for _ in range(2)]
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_hooks_are_set_before_a_start() -> None:
    broker = RunningBroker()
    for _ in range(2):
        broker.fail("ApiVersions", ErrorCode.REQUEST_TIMED_OUT, times=1)
        broker.start()
        with RawClient(broker) as client:
            codes = [client.call(ApiVersionsRequest(), 0).error_code for _ in range(2)]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]
        broker.stop()
    broker.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_a_hook_raises_is_told_when_the_broker_stops(
    broker: RunningBroker, client: RawClient, topic: str, is_clean: bool
) -> None:
    def is_wrong(header: RequestHeader, request: Any) -> bool:
        raise LookupError("a mistake in the test")

    broker.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR, matches=is_wrong)
    # The client is not kept waiting.
    assert produce_to(client, topic).error_code == 0
    if not is_clean:
        broker.kill()
    with pytest.raises(LookupError, match="a mistake in the test"):
        broker.stop()
    # Once is enough.
    broker.stop()


# --- how real clients cope ---


class Confluent:
    """librdkafka."""

    def __init__(self, broker: RunningBroker) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "retry.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
                "message.timeout.ms": TIMEOUT_S * 1000,
                "log_level": 0,
            }
        )
        self._bootstrap = broker.bootstrap

    def produce(self, topic: str, values: list[bytes]) -> None:
        errors = []
        for value in values:
            self._producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
        assert self._producer.flush(TIMEOUT_S) == 0
        assert [error for error in errors if error is not None] == []

    def consume(self, topic: str, count: int) -> list[bytes]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "reconnect.backoff.ms": 10,
                "log_level": 0,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        gives_up_at = time.monotonic() + TIMEOUT_S
        while len(values) < count and time.monotonic() < gives_up_at:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        consumer.close()
        return values

    def close(self) -> None:
        self._producer.flush(1)


class KafkaPython:
    """kafka-python."""

    def __init__(self, broker: RunningBroker) -> None:
        self._bootstrap = broker.bootstrap
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=broker.bootstrap,
            acks="all",
            retries=100,
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
            enable_idempotence=True,
        )

    def produce(self, topic: str, values: list[bytes]) -> None:
        sent = [self._producer.send(topic, value) for value in values]
        for each in sent:
            each.get(TIMEOUT_S)

    def consume(self, topic: str, count: int) -> list[bytes]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="earliest",
            reconnect_backoff_ms=10,
            consumer_timeout_ms=TIMEOUT_S * 1000,
        )
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        values = []
        for message in consumer:
            values.append(message.value)
            if len(values) == count:
                break
        consumer.close()
        return values

    def close(self) -> None:
        self._producer.close(TIMEOUT_S)


@pytest.fixture(params=[Confluent, KafkaPython])
def real(request: pytest.FixtureRequest, broker: RunningBroker) -> Iterator[Any]:
    client = request.param(broker)
    yield client
    client.close()


VALUES = [b"%d" % number for number in range(30)]


def test_a_producer_copes_with_errors_that_can_be_retried(
    broker: RunningBroker, real: Any, topic: str
) -> None:
    broker.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3)
    real.produce(topic, VALUES)
    assert real.consume(topic, len(VALUES)) == VALUES


def test_a_producer_copes_with_connections_that_break(
    broker: RunningBroker, real: Any, topic: str
) -> None:
    real.produce(topic, VALUES[:10])
    broker.drop("Produce", times=2)
    real.produce(topic, VALUES[10:])
    assert real.consume(topic, len(VALUES)) == VALUES


def test_a_producer_copes_with_delays(broker: RunningBroker, real: Any, topic: str) -> None:
    broker.delay("Produce", 0.2, times=2)
    real.produce(topic, VALUES)
    assert real.consume(topic, len(VALUES)) == VALUES


def test_a_consumer_copes_with_errors_breaks_and_delays(
    broker: RunningBroker, real: Any, topic: str
) -> None:
    real.produce(topic, VALUES)
    broker.fail("Fetch", ErrorCode.UNKNOWN_SERVER_ERROR, times=1)
    broker.drop("Fetch", times=1)
    broker.delay("Fetch", 0.2, times=1)
    assert real.consume(topic, len(VALUES)) == VALUES


def test_a_client_copes_with_metadata_that_is_refused_once(
    broker: RunningBroker, real: Any, topic: str
) -> None:
    broker.fail("Metadata", ErrorCode.LEADER_NOT_AVAILABLE, times=1)
    real.produce(topic, VALUES)
    assert real.consume(topic, len(VALUES)) == VALUES

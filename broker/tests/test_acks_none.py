"""Produce with acks=0: no reply, and a closed connection is the only way to say that it failed."""

from __future__ import annotations

import pytest

from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import (
    ACKS_NONE,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    fetch_from,
    produce,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.records.codecs import Codec


def test_it_is_appended_and_not_answered(client: RawClient) -> None:
    create_topic(client, "topic")
    client.send(produce("topic", acks=ACKS_NONE), version=PRODUCE_VERSION)
    client.send(produce("topic", acks=ACKS_NONE), version=PRODUCE_VERSION)
    client.send(ApiVersionsRequest(), version=0)
    assert client.receive()[0] == client.sent
    assert fetch_from(client, "topic", offset=1).high_watermark == 2


@pytest.mark.parametrize("configs", [{}, {"compression.type": "gzip"}], ids=["inline", "thread"])
def test_a_refused_batch_closes_the_connection_with_one_line(
    broker: RunningBroker,
    client: RawClient,
    configs: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_topic(client, "topic", configs=configs)
    records = bytearray(batch(b"x" * 100_000, codec=Codec.ZSTD))
    records[-1] ^= 1
    caplog.clear()
    client.send(produce("topic", bytes(records), acks=ACKS_NONE), version=PRODUCE_VERSION)
    assert client.is_closed_by_peer()
    (record,) = caplog.records
    assert "produce with acks=0 failed: CORRUPT_MESSAGE" in record.getMessage()
    assert record.exc_info is None
    with RawClient(broker) as other:
        assert fetch_from(other, "topic").high_watermark == 0


def test_an_unknown_topic_closes_the_connection(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(produce("unknown", acks=ACKS_NONE), version=PRODUCE_VERSION)
    assert client.is_closed_by_peer()
    assert "UNKNOWN_TOPIC_OR_PARTITION" in caplog.records[-1].getMessage()


def test_a_failure_that_a_hook_makes_closes_the_connection(
    broker: RunningBroker, client: RawClient
) -> None:
    create_topic(client, "topic")
    broker.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=1)
    client.send(produce("topic", acks=ACKS_NONE), version=PRODUCE_VERSION)
    assert client.is_closed_by_peer()


def test_requests_before_it_are_answered(client: RawClient) -> None:
    client.send(ApiVersionsRequest(), version=0)
    assert client.receive()[0] == 1
    client.send(produce("unknown", acks=ACKS_NONE), version=PRODUCE_VERSION)
    assert client.is_closed_by_peer()

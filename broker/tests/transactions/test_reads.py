"""Readers of committed data: how far they see, and when they hear of more."""

from __future__ import annotations

import threading

import pytest

from klamm.broker.testing import RunningBroker
from klamm.broker.tests.groups.test_durability import is_silent
from klamm.broker.tests.raw_client import FETCH_VERSION, RawClient, create_topic, fetch, produce_to
from klamm.broker.tests.transactions.transactional_client import (
    READ_COMMITTED,
    Producer,
    latest_offset,
    read_committed,
)
from klamm.wire.errors import ErrorCode


@pytest.mark.parametrize("commit", [True, False])
def test_a_waiting_fetch_is_answered_when_the_transaction_ends(
    broker: RunningBroker, commit: bool
) -> None:
    with RawClient(broker) as client, RawClient(broker) as reader:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert producer.write("t", b"one") is ErrorCode.NONE
        request = fetch("t", max_wait_ms=20_000)
        request.isolation_level = READ_COMMITTED
        reader.send(request, version=FETCH_VERSION)
        assert is_silent(reader)
        # What others write behind the open transaction can't be seen either.
        assert produce_to(client, "t").error_code == ErrorCode.NONE
        assert is_silent(reader)
        assert producer.end(commit=commit) is ErrorCode.NONE
        held = reader.receive()[1].responses[0].partitions[0]
        assert held.last_stable_offset == held.high_watermark == 3
        assert len(held.aborted_transactions) == (not commit)
        assert read_committed(reader, "t") == ([b"one"] if commit else []) + [b"value"]


def test_the_end_of_the_log_for_both_kinds_of_readers(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        create_topic(client, "t")
        producer = Producer(client)
        producer.init()
        assert produce_to(client, "t").error_code == ErrorCode.NONE
        assert producer.write("t", b"one") is ErrorCode.NONE
        assert latest_offset(client, "t", committed=True) == 1
        assert latest_offset(client, "t", committed=False) == 2
        assert producer.end() is ErrorCode.NONE
        producer.settle()
        assert latest_offset(client, "t", committed=True) == 3


def test_many_producers_at_once(broker: RunningBroker) -> None:
    """Each with its own transactions in the same partition; what is committed is there once."""
    with RawClient(broker) as client:
        create_topic(client, "t")

    def work(name: str) -> None:
        with RawClient(broker) as own:
            producer = Producer(own, name)
            producer.init()
            for count in range(5):
                value = f"{name}{count}".encode()
                while producer.write("t", value) is not ErrorCode.NONE:
                    producer.sequences.clear()
                assert producer.end(commit=count % 2 == 0) is ErrorCode.NONE

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with RawClient(broker) as client:
        for name in "abcd":
            Producer(client, name).settle()
        values = read_committed(client, "t")
        assert sorted(values) == sorted(
            f"{name}{count}".encode() for name in "abcd" for count in (0, 2, 4)
        )

"""Produce in a transaction: what is refused, beside what is accepted, and what the log keeps."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.batches import TRANSACTIONAL, R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.requests import Body, produce
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import ADDING, Producer, compare_committed


def written_by(
    producer: Producer, topic: str, partitions: dict[int, dict[str, int]], *, acks: int = -1
) -> Body:
    """One batch for each partition, with fields of its header; `epoch` and `producer` are added."""

    def body(side: Side) -> Plain:
        records = {}
        for partition, given in partitions.items():
            fields = dict(given)
            who = {name: fields.pop(name, 0) for name in ("epoch", "producer")}
            header: dict[str, Any] = {"base_sequence": 0, "attributes": TRANSACTIONAL}
            header |= producer.identity(side, **who)
            records[partition] = batch(R(b"value"), **{**header, **fields})
        return produce(topic, records, acks=acks, transactional_id=producer.id)(side)

    return body


@pytest.mark.every_version("produce")
def test_several_producers_in_one_request(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    """Nobody can be two; ordinary batches beside are nobody's."""
    topic = twin.create_topic(partitions=3)
    producer.init(talk)
    producer.add(talk, {topic: [0, 1, 2]})
    for partitions in (
        {0: {}, 1: {"producer": 1}},
        {0: {}, 1: {"epoch": 1}},
        {0: {"producer": 1}, 1: {"crc": 7}},
    ):
        talk.ask("produce", version, written_by(producer, topic, partitions))
    partitions = {0: {}, 1: {"attributes": 0, "base_sequence": 3}, 7: {}}
    talk.ask("produce", version, written_by(producer, topic, partitions))
    for partition in (0, 1, 2):
        compare_committed(talk, topic, partition)


@pytest.mark.every_version("produce")
def test_sequences(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    """Producers of version 2 begin at 0 wherever nothing of them is known; others anywhere."""
    topic = twin.create_topic(partitions=2)
    producer.init(talk)
    producer.add(talk, {topic: [0, 1]})
    for sequence in (5, 0, 0, 1, 3, 2, 0):
        body = written_by(producer, topic, {0: {"base_sequence": sequence}})
        talk.ask("produce", version, body)
    # Outside of the transaction, while it is open.
    body = written_by(producer, topic, {0: {"attributes": 0, "base_sequence": 3}})
    talk.ask("produce", version, body)
    compare_committed(talk, topic)
    producer.describe(talk)


@pytest.mark.every_version("produce")
def test_what_can_not_be_stored(
    twin: Twin, talk: Conversation, producer: Producer, version: int
) -> None:
    """The coordinator is asked first: a partition whose batch is bad is part of the transaction."""
    topic = twin.create_topic(partitions=2)
    producer.init(talk)
    for fields in ({"crc": 1}, {"record_count": 2}, {"base_sequence": -1}):
        talk.ask("produce", version, written_by(producer, topic, {0: fields}))
    producer.describe(talk)
    producer.add(talk, {topic: [0]})
    for fields in ({"crc": 1}, {"record_count": 2}, {"base_sequence": -1}, {}):
        talk.ask("produce", version, written_by(producer, topic, {0: fields}))
    producer.describe(talk)
    producer.end(talk, version=5)
    producer.settle(talk)
    for partition in (0, 1):
        compare_committed(talk, topic, partition)


@pytest.mark.every_version("produce")
def test_less_acks(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    topic = twin.create_topic()
    producer.init(talk)
    producer.add(talk, {topic: [0]})
    talk.ask("produce", version, written_by(producer, topic, {0: {}}, acks=1))
    compare_committed(talk, topic)


@pytest.mark.every_version("produce")
def test_refused_without_acknowledgement(twin: Twin, producer: Producer, version: int) -> None:
    """There is no reply that could carry the error, so the connection ends."""
    topic = twin.create_topic()
    with twin.conversation() as talk:
        producer.init(talk)
        talk.send("produce", version, written_by(producer, topic, {0: {"epoch": 1}}, acks=0))
        talk.expect_closed()


@pytest.mark.every_version("produce")
def test_after_the_end(twin: Twin, talk: Conversation, producer: Producer, version: int) -> None:
    """What comes late belongs to no transaction, and begins none."""
    topic = twin.create_topic()
    end_version = 5 if version >= ADDING else 4
    producer.init(talk)
    producer.add(talk, {topic: [0]})
    producer.write(talk, topic, version=version)
    late = producer.copy()
    producer.end(talk, version=end_version)
    producer.settle(talk)
    late.write(talk, topic, b"late", version=version)
    late.write(talk, topic, b"late", version=version, epoch=5)
    compare_committed(talk, topic)
    producer.describe(talk)

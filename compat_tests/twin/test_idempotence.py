"""Idempotent producers: sequences, duplicates, gaps and epochs, as scripts of batches.

A script is a list of steps, each a batch of one producer on one partition. Both brokers must give
each step the same answer, and in the end hold the same log.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compat_tests.twin.batches import GZIP, R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.logs import compare_log
from compat_tests.twin.requests import produce, produce_many
from compat_tests.twin.topics import Twin

SEQUENCE_MAX = 2147483647
PRODUCER = 5000


def step(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: int = PRODUCER, **fields: int
) -> bytes:
    records = [R(b"%d" % (sequence + index)) for index in range(count)]
    identity = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    changed: Plain = {**identity, **fields}
    return batch(*records, **changed)


def other(sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    return step(sequence, count, epoch=epoch, producer=PRODUCER + 1)


FIVE = [step(sequence) for sequence in range(5)]
SEVEN = [step(sequence) for sequence in range(7)]

SCRIPTS: dict[str, Sequence[bytes]] = {
    "in order": [step(0, 3), step(3), step(4, 2)],
    "the last again": [step(0), step(0), step(0)],
    "the last five again": [*FIVE, *FIVE, *reversed(FIVE)],
    "older than the last five": [*SEVEN, step(0), step(1), step(2), step(6)],
    "again after others": [step(0), other(0), step(0), other(0), step(1)],
    "again with more records": [step(0, 2), step(0, 3), step(2)],
    "again with fewer records": [step(0, 3), step(0, 2), step(1, 2), step(2), step(3)],
    "overlapping the end": [step(0, 3), step(2, 2), step(3)],
    "again with other records": [
        step(0, 2),
        batch(R(b"x"), R(b"y"), producer_id=PRODUCER, producer_epoch=0, base_sequence=0),
    ],
    "a gap of one": [step(0), step(2), step(1), step(2)],
    "a large gap": [step(0), step(1000), step(SEQUENCE_MAX), step(1)],
    "starting in the middle": [step(7), step(8), step(7), step(6), step(0)],
    "starting at the maximum": [step(SEQUENCE_MAX), step(0), step(1), step(SEQUENCE_MAX)],
    "wrapping inside a batch": [step(SEQUENCE_MAX - 1, 4), step(2), step(SEQUENCE_MAX - 1, 4)],
    "wrapping between batches": [step(SEQUENCE_MAX - 1, 2), step(0), step(1), step(0)],
    "wrapping to one": [step(SEQUENCE_MAX - 1, 2), step(1), step(0)],
    "a newer epoch from zero": [step(0), step(1), step(0, epoch=1), step(1, epoch=1)],
    "a newer epoch from elsewhere": [step(0), step(1, epoch=1), step(5, epoch=1), step(1)],
    "a much newer epoch": [step(0), step(0, epoch=32767), step(1, epoch=32767)],
    "an older epoch": [step(0, epoch=5), step(1, epoch=4), step(0, epoch=0), step(1, epoch=5)],
    "a duplicate of an older epoch": [step(0), step(0, epoch=1), step(0), step(0, epoch=1)],
    "the last five across epochs": [*FIVE, step(0, epoch=1), FIVE[4], step(0, epoch=1)],
    "starting with epoch 3": [step(0, epoch=3), step(1, epoch=3), step(0, epoch=3)],
    "two producers": [step(0), other(0), step(1, 2), other(1), other(3), step(3)],
    "without a sequence": [step(-1), step(0), step(-1)],
    "a negative sequence": [step(-2), step(-2147483648), step(0)],
    "without an epoch": [step(0, epoch=-1), step(0), step(1, epoch=-1)],
    "a negative epoch": [step(0, epoch=-2), step(0, epoch=-32768), step(0)],
    "a negative producer": [step(0, producer=-2), step(0, producer=-1), step(0)],
    "an idempotent one beside others": [step(0), batch(), step(1), batch(), step(0)],
    "a refused batch in between": [step(0), step(1, crc=1), step(2), step(1)],
    "too many records said": [step(0), step(1, record_count=2), step(1)],
    "large producer ids": [step(0, producer=(1 << 63) - 1), step(0, producer=0)],
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(twin: Twin, talk: Conversation, name: str) -> None:
    topic = twin.create_topic()
    for records in SCRIPTS[name]:
        talk.ask("produce", 9, produce(topic, records))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("acks", [-1, 1])
def test_every_version(twin: Twin, talk: Conversation, version: int, acks: int) -> None:
    topic = twin.create_topic()
    script = [step(0, 2), step(2), step(0, 2), step(2), step(4), step(3), step(0, epoch=1), step(4)]
    for records in script:
        talk.ask("produce", version, produce(topic, records, acks=acks))
    compare_log(talk, topic)


def test_duplicates_on_a_topic_with_log_append_time(twin: Twin, talk: Conversation) -> None:
    """The answer to a duplicate carries the time at which the original was stored."""
    topic = twin.create_topic(configs={"message.timestamp.type": "LogAppendTime"})
    for records in (step(0), step(1, 2), step(0), step(1, 2)):
        talk.ask("produce", 9, produce(topic, records))
    compare_log(talk, topic)


@pytest.mark.parametrize("stored", ["gzip", "producer"])
def test_duplicates_of_compressed_batches(twin: Twin, talk: Conversation, stored: str) -> None:
    topic = twin.create_topic(configs={"compression.type": stored})
    packed = batch(
        *(R(b"a"), R(b"b")),
        codec=GZIP,
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=0,
    )
    for records in (packed, step(2), packed, step(2), step(0, 2)):
        talk.ask("produce", 9, produce(topic, records))
    compare_log(talk, topic, unpacked=True)


def test_partitions_do_not_share_sequences(twin: Twin, talk: Conversation) -> None:
    topic = twin.create_topic(partitions=2)
    for first, second in ((step(0), step(5)), (step(1), step(1)), (step(0), step(6))):
        body = produce_many([(topic, 0, first), (topic, 1, second)])
        talk.ask("produce", 9, body)
    for partition in (0, 1):
        compare_log(talk, topic, partition)


def test_without_acknowledgement(twin: Twin, talk: Conversation) -> None:
    """A duplicate is no error, so the connection stays; a gap ends it."""
    topic = twin.create_topic()
    for records in (step(0), step(0), step(1)):
        talk.send("produce", 9, produce(topic, records, acks=0))
    compare_log(talk, topic)
    talk.send("produce", 9, produce(topic, step(7), acks=0))
    talk.expect_closed()

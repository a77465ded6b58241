"""Produce: what is accepted, what is refused, and what then stands in the log."""

from __future__ import annotations

import time
import uuid

import pytest

from compat_tests.twin.batches import (
    CODEC_NAMES,
    GZIP,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    R,
    batch,
    message_set,
)
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import ZERO_UUID, Plain
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.logs import compare_log
from compat_tests.twin.requests import produce, produce_many
from compat_tests.twin.topics import Twin

THREE = (R(b"one"), R(b"two", timestamp_delta=5), R(b"three", timestamp_delta=2))
HOUR_MS = 3_600_000
METADATA_TOPIC_ID = uuid.UUID(int=1)


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("acks", [-1, 1])
def test_acknowledged(twin: Twin, talk: Conversation, version: int, acks: int) -> None:
    topic = twin.create_topic()
    for records in (batch(*THREE), batch()):
        talk.ask("produce", version, produce(topic, records, acks=acks))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
def test_without_acknowledgement(twin: Twin, talk: Conversation, version: int) -> None:
    """No reply at all: the next frame belongs to the next request."""
    topic = twin.create_topic()
    for records in (batch(*THREE), batch()):
        talk.send("produce", version, produce(topic, records, acks=0))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
def test_refused_without_acknowledgement(twin: Twin, version: int) -> None:
    """There is no reply that could carry the error, so the connection ends."""
    topic = twin.create_topic()
    for records in (batch(crc=1), batch(record_count=2), b""):
        with twin.conversation() as fresh:
            fresh.send("produce", version, produce(topic, records, acks=0))
            fresh.expect_closed()
    with twin.conversation() as fresh:
        fresh.send("produce", version, produce(topic, {0: batch(), 7: batch()}, acks=0))
        fresh.expect_closed()
    with twin.conversation() as fresh:
        compare_log(fresh, topic)


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_invalid_acks(twin: Twin, talk: Conversation, version: int, acks: int) -> None:
    topic, unknown = twin.create_topic(), twin.unused_name("unknown")
    talk.ask("produce", version, produce(topic, batch(), acks=acks))
    talk.ask("produce", version, produce(unknown, batch(), acks=acks))
    talk.ask("produce", version, produce(topic, batch(crc=1), acks=acks))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
def test_several_topics_and_partitions(twin: Twin, talk: Conversation, version: int) -> None:
    """Good and bad ones side by side: each gets its own answer."""
    first, second = twin.create_topic(partitions=3), twin.create_topic(partitions=2)
    unknown = twin.unused_name("unknown")
    bad = batch(crc=1)
    for entries in (
        [(first, 2, batch()), (first, 0, batch(*THREE)), (second, 1, batch())],
        [(first, 0, bad), (first, 1, batch()), (second, 0, batch())],
        [(unknown, 0, batch()), (first, 1, batch()), (first, 9, batch())],
        [(second, 0, batch()), (unknown, 0, batch()), (second, 0, b""), (first, 0, batch())],
        [(second, -1, batch()), (second, 2147483647, batch())],
        [(first, 0, batch()), (first, 1, bytes(100)), (second, 0, batch())],
        [(first, 0, batch()), (unknown, 0, b"\xff" * 100)],
        [(first, 0, batch()), (first, 1, batch() + bytes(100)), (second, 0, batch())],
    ):
        talk.ask("produce", version, produce_many(entries))
    for topic, partitions in ((first, 3), (second, 2)):
        for partition in range(partitions):
            compare_log(talk, topic, partition)


@pytest.mark.every_version("produce")
def test_unknown(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    for name, partition in ((twin.unused_name("unknown"), 0), (topic, 1), (topic, -1), ("", 0)):
        talk.ask("produce", version, produce(name, {partition: batch()}))
    for invalid in ("a b", "x" * 250, "."):
        talk.ask("produce", version, produce(invalid, batch()))


@pytest.mark.every_version("produce", since=13)
def test_topic_ids_that_cannot_be(twin: Twin, talk: Conversation, version: int) -> None:
    """The zero id, and that of a topic that is no longer there."""
    topic = twin.create_topic()

    def by_id(topic_id: uuid.UUID) -> Plain:
        data = {"index": 0, "records": batch()}
        return {
            "transactional_id": None,
            "acks": -1,
            "timeout": 1000,
            "topic_data": [{"topic_id": topic_id, "partition_data": [data]}],
        }

    def by_old_id(side: Side) -> Plain:
        return by_id(side.topic_id(topic))

    talk.ask("produce", version, by_id(ZERO_UUID))
    talk.ask("produce", version, by_id(METADATA_TOPIC_ID))
    talk.ask("produce", version, by_old_id)
    talk.ask("delete_topics", 5, {"topic_names": [topic], "timeout": 10_000})
    twin.wait_until_gone(topic)
    talk.ask("produce", version, by_old_id)


@pytest.mark.every_version("produce")
def test_one_partition_twice(twin: Twin, talk: Conversation, version: int) -> None:
    topic, other = twin.create_topic(), twin.create_topic()
    first, second = batch(R(b"first")), batch(R(b"second"), R(b"third"))
    bad = batch(crc=1)
    with all_cases() as cases:
        for entries in (
            [(topic, 0, first), (topic, 0, second)],
            [(topic, 0, first), (other, 0, first), (topic, 0, second)],
            [(topic, 0, bad), (topic, 0, second)],
            [(topic, 0, first), (topic, 0, bad)],
        ):
            with cases.case(f"{[len(entry[2]) for entry in entries]}"):
                talk.ask("produce", version, produce_many(entries))
        compare_log(talk, topic)


@pytest.mark.every_version("produce")
def test_no_records(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    talk.ask("produce", version, produce(topic, b""))
    talk.ask("produce", version, produce_many([]))
    compare_log(talk, topic)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_null_records(twin: Twin, talk: Conversation, version: int) -> None:
    """Kafka trips over them while it writes its own log line, and never answers."""
    topic = twin.create_topic()
    body = produce(topic, None)
    talk.ask("produce", version, body, patience_s=0.5, deviation="D-003")


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("codec", CODEC_NAMES, ids=CODEC_NAMES.get)
def test_codecs(twin: Twin, talk: Conversation, version: int, codec: int) -> None:
    """zstd came with version 7 and is refused before."""
    topic = twin.create_topic()
    talk.ask("produce", version, produce(topic, batch(*THREE, codec=codec)))
    compare_log(talk, topic)


@pytest.mark.parametrize("codec", CODEC_NAMES, ids=CODEC_NAMES.get)
@pytest.mark.parametrize("stored", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_topics_with_their_own_codec(
    twin: Twin, talk: Conversation, stored: str, codec: int
) -> None:
    """The broker compresses again; how well is its own affair, what is inside is not."""
    topic = twin.create_topic(configs={"compression.type": stored})
    records = [R(b"v" * 100, b"k", [(b"h", None), (b"i", b"")]), R(None), *THREE]
    identity: Plain = {"producer_id": 77, "producer_epoch": 0, "base_sequence": 0}
    for producer in (Plain(), identity):
        talk.ask("produce", 9, produce(topic, batch(*records, codec=codec, **producer)))
    compare_log(talk, topic, unpacked=True)


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats(twin: Twin, talk: Conversation, version: int, magic: int) -> None:
    topic = twin.create_topic()
    talk.ask("produce", version, produce(topic, message_set(magic)))
    talk.ask("produce", version, produce(topic, message_set(magic, key=b"key") * 2))
    talk.ask("produce", version, produce(topic, batch() + message_set(magic)))
    talk.ask("produce", version, produce(topic, message_set(magic) + batch()))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
def test_more_than_one_batch(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    with all_cases() as cases:
        for name, records in {
            "two": batch() * 2,
            "and a byte": batch() + b"\x00",
            "and 16 bytes": batch() + bytes(16),
            "and 17 bytes": batch() + bytes(17),
            "and a header": batch() + batch()[:61],
            "without the last byte": batch()[:-1],
            "a header": batch()[:61],
            "60 bytes": batch()[:60],
            "17 bytes": batch()[:17],
            "16 bytes": batch()[:16],
            "one byte": b"\x00",
            "garbage": b"\xff" * 100,
            "zeros": bytes(100),
        }.items():
            with cases.case(name):
                talk.ask("produce", version, produce(topic, records))
        compare_log(talk, topic)


@pytest.mark.parametrize("codec", [0, GZIP])
def test_sizes(twin: Twin, talk: Conversation, codec: int) -> None:
    """max.message.bytes counts the batch as it is stored, header included."""
    topic = twin.create_topic(configs={"max.message.bytes": "1000"})
    filling = bytes(range(256)) * 4
    with all_cases() as cases:
        for size in (900, 901, 902, 925, 926, 927, 928, 929, 930, 931, 1020):
            with cases.case(f"a value of {size} bytes"):
                records = batch(R(filling[:size]), codec=codec)
                talk.ask("produce", 9, produce(topic, records))
        with cases.case("the default limit"):
            large = twin.create_topic()
            talk.ask("produce", 9, produce(large, batch(R(bytes(1_048_588)))))
            talk.ask("produce", 9, produce(large, batch(R(bytes(1_048_588 - 74)))))
        compare_log(talk, topic)


@pytest.mark.parametrize("codec", [0, LZ4])
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_timestamp_types(twin: Twin, talk: Conversation, kind: str, codec: int) -> None:
    topic = twin.create_topic(configs={"message.timestamp.type": kind})
    now = int(time.time() * 1000)
    changes: list[Plain] = [
        *({}, {"base_timestamp": now}, {"base_timestamp": 0}, {"base_timestamp": -1}),
        *({"base_timestamp": now + 10 * HOUR_MS}, {"base_timestamp": -5}),
        {"attributes": codec | 8},
    ]
    for fields in changes:
        talk.ask("produce", 9, produce(topic, batch(*THREE, codec=codec, **fields)))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_timestamps_out_of_bounds(twin: Twin, talk: Conversation, version: int, kind: str) -> None:
    """Where the topic bounds them, every record outside is named (KIP-937, and KIP-467 from 8)."""
    topic = twin.create_topic(
        configs={
            "message.timestamp.type": kind,
            "message.timestamp.before.max.ms": str(HOUR_MS),
            "message.timestamp.after.max.ms": str(HOUR_MS),
        }
    )
    now = int(time.time() * 1000)
    steps = (0, -2 * HOUR_MS, 0, 2 * HOUR_MS)
    spread = [R(b"%d" % step, timestamp_delta=step) for step in steps]
    for codec in (0, SNAPPY):
        for records in (
            batch(base_timestamp=now, codec=codec),
            batch(base_timestamp=now - 2 * HOUR_MS, codec=codec),
            batch(base_timestamp=now + 2 * HOUR_MS, codec=codec),
            batch(*spread, base_timestamp=now, codec=codec),
            batch(*spread[:3], base_timestamp=now, codec=codec),
            batch(*spread[:2], base_timestamp=now, codec=codec),
            batch(R(timestamp_delta=5), base_timestamp=-1, codec=codec),
            batch(base_timestamp=-1, codec=codec),
        ):
            talk.ask("produce", version, produce(topic, records))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_keys_on_compacted_topics(
    twin: Twin, talk: Conversation, version: int, policy: str
) -> None:
    topic = twin.create_topic(configs={"cleanup.policy": policy})
    keyed, keyless = R(b"v", b"k"), R(b"v")
    for codec in (0, GZIP):
        for records in (
            *([keyed], [keyed, R(None, b"k")], [R(b"v", b"")], [keyless], [keyed, keyless]),
            *([keyless, keyed, keyless], [keyless] * 12),
        ):
            talk.ask("produce", version, produce(topic, batch(*records, codec=codec)))
    compare_log(talk, topic)


@pytest.mark.every_version("produce", until=6)
def test_zstd_is_named_before_other_faults(twin: Twin, talk: Conversation, version: int) -> None:
    topic, unknown = twin.create_topic(), twin.unused_name("unknown")
    talk.ask("produce", version, produce(topic, batch(codec=ZSTD, crc=1)))
    talk.ask("produce", version, produce(topic, batch(codec=ZSTD) * 2))
    talk.ask("produce", version, produce(unknown, batch(codec=ZSTD)))


@pytest.mark.every_version("produce", until=12)
def test_the_metadata_log(talk: Conversation, version: int) -> None:
    """It is no topic that a client could write to."""
    talk.ask("produce", version, produce("__cluster_metadata", batch()))


def test_internal_topics(twin: Twin, talk: Conversation) -> None:
    """They can be made by hand, but only the broker writes to them."""
    name = "__share_group_state"
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    talk.ask("create_topics", 7, {"topics": [topic], "timeout": 10_000})
    twin.wait_until_led(name)
    talk.ask("metadata", 12, {"topics": [{"name": name}]})
    for version in (3, 9, 13):
        talk.ask("produce", version, produce(name, batch()))
        talk.ask("produce", version, produce(name, batch(crc=1)))
        talk.ask("produce", version, produce(name, batch(), acks=7))
    compare_log(talk, name)
    talk.ask("delete_topics", 6, {"topics": [{"name": name}], "timeout": 10_000})
    twin.wait_until_gone(name)


@pytest.mark.every_version("produce")
def test_a_transactional_id_beside_ordinary_batches(
    twin: Twin, talk: Conversation, version: int
) -> None:
    """Only batches decide: an id without a transactional batch changes nothing."""
    topic = twin.create_topic()
    for name in ("some-id", ""):
        talk.ask("produce", version, produce(topic, batch(), transactional_id=name))
    compare_log(talk, topic)


@pytest.mark.every_version("produce")
def test_a_transactional_batch_without_an_id(twin: Twin, talk: Conversation, version: int) -> None:
    """It refuses the whole request, unless an unreadable batch before it has done so."""
    topic, unknown = twin.create_topic(partitions=2), twin.unused_name("unknown")
    identity: Plain = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    transactional = batch(attributes=TRANSACTIONAL, **identity)
    for entries in (
        [(topic, 0, transactional)],
        [(topic, 0, batch(attributes=TRANSACTIONAL))],
        [(topic, 0, batch()), (topic, 1, transactional)],
        [(unknown, 0, transactional), (topic, 1, batch())],
        [(topic, 0, bytes(100)), (topic, 1, transactional)],
        [(topic, 0, transactional), (topic, 1, bytes(100))],
        [(topic, 0, transactional[:-1]), (topic, 1, batch())],
    ):
        talk.ask("produce", version, produce_many(entries))
    for partition in (0, 1):
        compare_log(talk, topic, partition)


@pytest.mark.every_version("produce")
def test_timeouts_that_cannot_be(twin: Twin, talk: Conversation, version: int) -> None:
    """One replica has nothing to wait for, so the time it may take does not matter."""
    topic = twin.create_topic()
    for timeout in (0, -1, 2147483647, -2147483648):
        talk.ask("produce", version, produce(topic, batch(), timeout=timeout))
    compare_log(talk, topic)

"""Topics as an ordinary client sees them, without Spark: the checks read what the programs made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import KafkaError, NewTopic

TIMEOUT_S = 60.0
BATCH_RECORDS = 1_000
WAIT_S = 0.05

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record with its place."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def make_topic(
    bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Make a topic unless it is there."""
    admin = _admin(bootstrap)
    new = NewTopic(topic, partitions, 1, config=dict(config or {}))
    try:
        admin.create_topics([new])[topic].result(TIMEOUT_S)
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    except TimeoutError:
        # The one that came says nothing.
        raise TimeoutError(f"{bootstrap} did not answer for {TIMEOUT_S:.0f} s") from None


def is_compacted(bootstrap: str, topic: str) -> bool:
    """Whether records may go although retention lets them stay."""
    admin = _admin(bootstrap)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    config = admin.describe_configs([asked])[asked].result(TIMEOUT_S)
    return "compact" in config["cleanup.policy"].value


def offset_ranges(bootstrap: str, topic: str) -> dict[int, tuple[int, int]]:
    """For each partition its first offset, and the one that the next record will get."""
    consumer = _reader(bootstrap)
    try:
        return {
            partition: offset_range(consumer, TopicPartition(topic, partition))
            for partition in partitions(consumer, topic)
        }
    finally:
        consumer.close()


def offset_range(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    start, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
    return start, end


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """For each partition the offset that the next record will get."""
    return {partition: end for partition, (_, end) in offset_ranges(bootstrap, topic).items()}


def end_offset(consumer: Consumer, place: TopicPartition) -> int:
    return offset_range(consumer, place)[1]


def partition_count(bootstrap: str, topic: str) -> int:
    consumer = _reader(bootstrap)
    try:
        return len(partitions(consumer, topic))
    finally:
        consumer.close()


def partitions(consumer: Consumer, topic: str) -> list[int]:
    """The numbers of a topic's partitions."""
    described = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    if described.error is not None:
        raise KafkaException(f"topic {topic}: {described.error.str()}")
    return sorted(described.partitions)


def read_topic(
    bootstrap: str, topic: str, *, isolation: str = "read_committed"
) -> Iterator[LogRecord]:
    """All records that are in a topic now, each partition in the order of its offsets."""
    consumer = _reader(bootstrap, isolation)
    try:
        left = set(partitions(consumer, topic))
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        silent_s = 0.0
        while left:
            # It waits for so many messages, or for so long.
            messages = consumer.consume(BATCH_RECORDS, WAIT_S)
            silent_s = 0.0 if messages else silent_s + WAIT_S
            if silent_s > TIMEOUT_S:
                raise TimeoutError(f"{topic}: nothing came for {TIMEOUT_S:.0f} s")
            for message in messages:
                error = message.error()
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if error is None:
                    yield LogRecord(
                        partition,
                        offset,
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        _headers(message),
                    )
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(partition)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()


def _headers(message: Message) -> Headers:
    headers = message.headers() or []
    assert isinstance(headers, list)
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in headers
    )


def _admin(bootstrap: str) -> AdminClient:
    # Without its notes: that it goes before its last event was served is nothing to know.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})


def _reader(bootstrap: str, isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            # Demanded by the library, and never used: nothing subscribes or commits here.
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 50,
        }
    )

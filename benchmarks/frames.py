"""Kafka requests as bytes, written by hand: the few that the bare-socket client sends.

The bytes are built once, before the clock starts, so that the client costs as little as a Python
program can. All of them use flexible versions (KIP-482) that name topics by name.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping

import crc32c

API_VERSIONS, METADATA, PRODUCE, FETCH, CREATE_TOPICS = 18, 3, 0, 1, 19

CORRELATION_ID = 7
CLIENT_ID = b"klamm-benchmarks"
NO_TAGS = b"\x00"

# Where the error code stands, counted from the correlation id of the reply.
API_VERSIONS_ERROR_AT = 4


def uvarint(value: int) -> bytes:
    """An unsigned varint, as lengths and counts of flexible versions are written."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """A zigzag varint, as lengths and deltas inside a record are written."""
    return uvarint((value << 1) ^ (value >> 63))


def compact(data: bytes) -> bytes:
    """A compact string or compact bytes."""
    return uvarint(len(data) + 1) + data


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """A whole request with request header 2 and its size in front."""
    header = struct.pack(">hhih", api_key, version, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    content = header + NO_TAGS + body
    return struct.pack(">i", len(content)) + content


def api_versions() -> bytes:
    """ApiVersions 3."""
    return frame(API_VERSIONS, 3, compact(b"klamm-benchmarks") + compact(b"1") + NO_TAGS)


def metadata(topic: str) -> bytes:
    """Metadata 12 for one topic, without creating it."""
    wanted = bytes(16) + compact(topic.encode()) + NO_TAGS
    return frame(METADATA, 12, uvarint(2) + wanted + b"\x00\x00" + NO_TAGS)


def create_topics(topic: str, partitions: int) -> bytes:
    """CreateTopics 7 with one topic of one replica and no configs."""
    wanted = compact(topic.encode()) + struct.pack(">ih", partitions, 1) + uvarint(1) * 2 + NO_TAGS
    return frame(
        CREATE_TOPICS, 7, uvarint(2) + wanted + struct.pack(">i?", 10_000, False) + NO_TAGS
    )


def record_batch(*, records: int, value_bytes: int) -> bytes:
    """An uncompressed record batch of equal records without keys, stamped with the present time."""
    value = bytes(65 + index % 26 for index in range(value_bytes))
    body = bytearray()
    for index in range(records):
        # attributes, timestamp delta, offset delta, null key, value, no headers
        record = b"\x00" + varint(0) + varint(index) + varint(-1)
        record += varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    return _batch(body, records)


def _batch(body: bytes | bytearray, records: int) -> bytes:
    now_ms = int(time.time() * 1000)
    after_crc = struct.pack(">hiqqqhii", 0, records - 1, now_ms, now_ms, -1, -1, -1, records)
    after_crc += bytes(body)
    after_length = struct.pack(">ibI", -1, 2, crc32c.crc32c(after_crc)) + after_crc
    return struct.pack(">qi", 0, len(after_length)) + after_length


def keyed_batch(keys: int, value_bytes: int, seed: int) -> bytes:
    """As record_batch, with a record for each of some keys; the seed makes the values differ."""
    value = bytes(65 + (index + seed) % 26 for index in range(value_bytes))
    body = bytearray()
    for index in range(keys):
        key = b"key-%06d" % index
        record = b"\x00" + varint(0) + varint(index) + varint(len(key)) + key
        record += varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    return _batch(body, keys)


def produce(topic: str, partition: int, batch: bytes, *, acks: int) -> bytes:
    """Produce 9 with one batch for one partition."""
    data = struct.pack(">i", partition) + compact(batch) + NO_TAGS
    topics = uvarint(2) + compact(topic.encode()) + uvarint(2) + data + NO_TAGS
    return frame(PRODUCE, 9, uvarint(0) + struct.pack(">hi", acks, 30_000) + topics + NO_TAGS)


def produce_error_at(topic: str) -> int:
    """Where the partition's error code stands in the reply to `produce`."""
    # correlation id, tags, topic count, name, partition count, partition index
    return 4 + 1 + 1 + len(compact(topic.encode())) + 1 + 4


def fetch(topic: str, partition: int, offset: int, *, bytes_max: int, wait_ms: int = 500) -> bytes:
    """Fetch 12 of one partition without a session."""
    offsets = {partition: offset}
    return fetch_in_session(topic, offsets, (0, -1), bytes_max=bytes_max, wait_ms=wait_ms)


def fetch_in_session(
    topic: str,
    offsets: Mapping[int, int],
    session: tuple[int, int],
    *,
    bytes_max: int,
    wait_ms: int = 500,
) -> bytes:
    """Fetch 12 of some partitions of a topic, from the offsets given.

    Args:
        session: its id and its epoch; (0, 0) asks for a new one (KIP-227).
    """
    wanted = b"".join(
        struct.pack(">iiqiqi", partition, -1, offset, -1, -1, bytes_max) + NO_TAGS
        for partition, offset in offsets.items()
    )
    topics = uvarint(2) + compact(topic.encode()) + uvarint(len(offsets) + 1) + wanted + NO_TAGS
    limits = struct.pack(">iiiibii", -1, wait_ms, 1, bytes_max, 0, *session)
    return frame(FETCH, 12, limits + topics + uvarint(1) + compact(b"") + NO_TAGS)


def fetched_session(reply: bytes) -> int:
    """The id of the session in the reply to `fetch_in_session`."""
    # correlation id, tags, throttle, error
    return int(struct.unpack_from(">i", reply, 4 + 1 + 4 + 2)[0])


def fetch_error_at(topic: str) -> int:
    """Where the partition's error code stands in the reply to `fetch`."""
    # correlation id, tags, throttle, error, session, topic count, name, partition count, index
    return 4 + 1 + 4 + 2 + 4 + 1 + len(compact(topic.encode())) + 1 + 4


def create_topics_error_at(topic: str) -> int:
    """Where the topic's error code stands in the reply to `create_topics`."""
    # correlation id, tags, throttle, topic count, name, topic id
    return 4 + 1 + 4 + 1 + len(compact(topic.encode())) + 16

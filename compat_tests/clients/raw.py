"""A few requests written by hand, to see what no client shows: batch headers and broken frames.

Only old, non-flexible versions that Kafka 4 still serves are used: they are a handful of big-endian
numbers, and nothing of the broker's own codec is needed to write them.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

API_PRODUCE = 0
API_FETCH = 1
API_LIST_OFFSETS = 2
API_METADATA = 3
API_API_VERSIONS = 18
API_INIT_PRODUCER_ID = 22

# The first with zstd; still one of the non-flexible ones.
PRODUCE_VERSION = 7

COORDINATOR_LOAD_IN_PROGRESS = 14

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The fields of a stored batch that the tests look at."""

    base_offset: int
    codec: str
    log_append_time: bool
    producer_id: int
    base_sequence: int
    record_count: int


def connect(bootstrap: str, timeout_s: float = 10.0) -> socket.socket:
    """A plain TCP connection to the broker."""
    host, port = bootstrap.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout_s)


def request_frame(api_key: int, version: int, body: bytes, correlation_id: int = 7) -> bytes:
    """A frame with request header v1 and no client id."""
    header = struct.pack(">hhih", api_key, version, correlation_id, -1)
    return struct.pack(">i", len(header) + len(body)) + header + body


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Exactly ``size`` bytes, or EOFError when the broker closes first."""
    chunks = bytearray()
    while len(chunks) < size:
        chunk = connection.recv(size - len(chunks))
        if not chunk:
            raise EOFError(f"closed after {len(chunks)} of {size} bytes")
        chunks += chunk
    return bytes(chunks)


def read_reply(connection: socket.socket) -> tuple[int, bytes]:
    """The next reply: its correlation id and what follows it."""
    (size,) = struct.unpack(">i", read_exactly(connection, 4))
    frame = read_exactly(connection, size)
    (correlation_id,) = struct.unpack_from(">i", frame)
    return correlation_id, frame[4:]


def call(bootstrap: str, api_key: int, version: int, body: bytes) -> bytes:
    """One request on a connection of its own; the body of the reply."""
    with connect(bootstrap) as connection:
        connection.sendall(request_frame(api_key, version, body))
        correlation_id, reply = read_reply(connection)
    if correlation_id != 7:
        raise ValueError(f"reply to request {correlation_id}")
    return reply


def is_alive(bootstrap: str) -> bool:
    """Whether the broker answers ApiVersions v0 without an error."""
    (error,) = struct.unpack_from(">h", call(bootstrap, API_API_VERSIONS, 0, b""))
    return bool(error == 0)


def api_version_ranges(bootstrap: str) -> dict[int, tuple[int, int]]:
    """The advertised version range of every API key, by ApiVersions v0."""
    reply = call(bootstrap, API_API_VERSIONS, 0, b"")
    error, count = struct.unpack_from(">hi", reply)
    if error != 0:
        raise ValueError(f"ApiVersions answered error {error}")
    ranges = (struct.unpack_from(">hhh", reply, 6 + 6 * index) for index in range(count))
    return {key: (lowest, highest) for key, lowest, highest in ranges}


def list_offset(bootstrap: str, topic: str, partition: int, timestamp: int) -> tuple[int, int]:
    """Error code and offset that ListOffsets v1 answers for one partition."""
    name = topic.encode()
    body = struct.pack(">iih", -1, 1, len(name)) + name
    body += struct.pack(">iiq", 1, partition, timestamp)
    reply = call(bootstrap, API_LIST_OFFSETS, 1, body)
    position = 4 + 2 + len(name) + 4 + 4
    error, _, offset = struct.unpack_from(">hqq", reply, position)
    return error, offset


def wait_until_led(bootstrap: str, topic: str, partitions: int, timeout_s: float = 30.0) -> None:
    """Wait until every partition of a new topic answers ListOffsets.

    Apache Kafka answers CreateTopics before the leaders are there; a record sent with acks=0 in
    that moment is lost, which is not what the tests are about.
    """
    deadline = time.monotonic() + timeout_s
    for partition in range(partitions):
        while list_offset(bootstrap, topic, partition, -2)[0] != 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}-{partition} has no leader")
            time.sleep(0.02)


def fetch_records(bootstrap: str, topic: str, partition: int, offset: int) -> bytes:
    """The record bytes that Fetch v4 answers for one partition."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, 1000, 1, 64 << 20, 0) + struct.pack(">ih", 1, len(name)) + name
    body += struct.pack(">iiqi", 1, partition, offset, 64 << 20)
    reply = call(bootstrap, API_FETCH, 4, body)
    position = 4 + 4 + 2 + len(name) + 4
    _, error, _, _, aborted = struct.unpack_from(">ihqqi", reply, position)
    if error != 0:
        raise ValueError(f"Fetch answered error {error}")
    position += 4 + 2 + 8 + 8 + 4 + 16 * max(aborted, 0)
    (size,) = struct.unpack_from(">i", reply, position)
    return reply[position + 4 : position + 4 + size]


def batch_headers(records: bytes) -> Iterator[BatchHeader]:
    """The headers of the whole batches in a fetched byte range."""
    position = 0
    while position + 61 <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        (attributes,) = struct.unpack_from(">h", records, position + 21)
        producer_id, _, sequence, count = struct.unpack_from(">qhii", records, position + 43)
        yield BatchHeader(
            base_offset=base_offset,
            codec=CODECS[attributes & 7],
            log_append_time=bool(attributes & 8),
            producer_id=producer_id,
            base_sequence=sequence,
            record_count=count,
        )
        position += 12 + length


def stored_batches(
    bootstrap: str, topic: str, partition: int = 0, offset: int = 0
) -> list[BatchHeader]:
    """The headers of all batches from ``offset`` on, as the broker serves them."""
    return list(batch_headers(fetch_records(bootstrap, topic, partition, offset)))


def init_producer_id(bootstrap: str) -> tuple[int, int]:
    """A new producer id and its epoch, from InitProducerId v0.

    Apache Kafka has none to give for a moment after its start.
    """
    deadline = time.monotonic() + 30
    while True:
        reply = call(bootstrap, API_INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60_000))
        error, producer_id, epoch = struct.unpack_from(">hqh", reply, 4)
        if error == 0:
            return producer_id, epoch
        if error != COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline:
            raise ValueError(f"InitProducerId answered error {error}")
        time.sleep(0.02)


def produce_body(topic: str, records: bytes, *, acks: int = -1, partition: int = 0) -> bytes:
    """Produce with the bytes of one batch for one partition."""
    name = topic.encode()
    body = struct.pack(">hhi", -1, acks, 30_000) + struct.pack(">ih", 1, len(name)) + name
    return body + struct.pack(">iii", 1, partition, len(records)) + records


def produce_outcome(reply: bytes) -> tuple[int, int]:
    """Error code and base offset in the reply to a `produce_body`."""
    (name_size,) = struct.unpack_from(">h", reply, 4)
    error, base_offset = struct.unpack_from(">hq", reply, 4 + 2 + name_size + 4 + 4)
    return error, base_offset


def produce(bootstrap: str, topic: str, records: bytes, *, acks: int = -1) -> tuple[int, int]:
    """Error code and base offset of one batch, sent as it is to partition 0."""
    body = produce_body(topic, records, acks=acks)
    return produce_outcome(call(bootstrap, API_PRODUCE, PRODUCE_VERSION, body))


def produce_all(bootstrap: str, topic: str, batches: Iterable[bytes]) -> None:
    """Send batches one after the other, each as it is; every one must be accepted."""
    with connect(bootstrap, timeout_s=30.0) as connection:
        for records in batches:
            body = produce_body(topic, records)
            connection.sendall(request_frame(API_PRODUCE, PRODUCE_VERSION, body))
            error, _ = produce_outcome(read_reply(connection)[1])
            if error != 0:
                raise ValueError(f"Produce answered error {error}")


def metadata_of(bootstrap: str, topic: str) -> tuple[int, int]:
    """The id of the only broker and the number of a topic's partitions, from Metadata v4."""
    name = topic.encode()
    body = struct.pack(">ih", 1, len(name)) + name + b"\x01"
    reply = call(bootstrap, API_METADATA, 4, body)
    _, brokers, node_id, host_size = struct.unpack_from(">iiih", reply)
    if brokers != 1:
        raise ValueError(f"{brokers} brokers")
    position = 14 + host_size + 4
    for _ in range(2):  # the broker's rack, the cluster's id: nullable strings
        (size,) = struct.unpack_from(">h", reply, position)
        position += 2 + max(size, 0)
    _, topics, error, size = struct.unpack_from(">iihh", reply, position)
    if topics != 1 or error != 0:
        raise ValueError(f"{topics} topics, error {error}")
    (partitions,) = struct.unpack_from(">i", reply, position + 12 + size + 1)
    return node_id, partitions

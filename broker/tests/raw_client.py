"""A client that sends what it is told: our own codec over a plain socket, one frame at a time.

It can pipeline, send half a frame, and look at the order of replies, which no real client shows.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any
from uuid import UUID

from klamm.broker.testing import RunningBroker
from klamm.wire.codec import decode, encode
from klamm.wire.header import RequestHeader, decode_response_header, encode_request_header
from klamm.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from klamm.wire.records.record import build_batch
from klamm.wire.registry import api
from klamm.wire.schema import ZERO_UUID, Message

CLIENT_ID = "raw"
TIMEOUT_S = 20.0
ACKS_ALL, ACKS_LEADER, ACKS_NONE = -1, 1, 0


def frame(request: Message, version: int, correlation_id: int = 1) -> bytes:
    """The bytes of one request, with its size in front."""
    header = RequestHeader(type(request).API_KEY, version, correlation_id, CLIENT_ID)
    body = encode_request_header(header) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def read_reply(request: type[Message], version: int, reply: bytes) -> tuple[int, Any]:
    """Correlation id and response of a reply without its size."""
    correlation_id, body_at = decode_response_header(request.API_KEY, version, reply)
    response = decode(api(request.API_KEY).response, version, memoryview(reply)[body_at:])
    return correlation_id, response


class RawClient:
    """One connection. Requests are numbered from 1 in the order in which they are sent."""

    def __init__(self, broker: RunningBroker | int, *, receive_buffer: int | None = None) -> None:
        port = broker if isinstance(broker, int) else broker.port
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT_S)
        try:
            self.socket.connect(("127.0.0.1", port))
        except BaseException:
            self.socket.close()
            raise
        self.sent = 0
        self._expected: dict[int, tuple[type[Message], int]] = {}

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def frame(self, request: Message, version: int | None = None) -> bytes:
        """The next request as bytes, remembered so that its reply can be read."""
        version = api(type(request).API_KEY).max_version if version is None else version
        self.sent += 1
        self._expected[self.sent] = (type(request), version)
        return frame(request, version, self.sent)

    def send(self, *requests: Message, version: int | None = None) -> None:
        """Send the requests in one piece."""
        self.socket.sendall(b"".join(self.frame(request, version) for request in requests))

    def receive(self) -> tuple[int, Any]:
        """The next reply: the number of its request, and the response."""
        reply = self.receive_frame()
        (correlation_id,) = struct.unpack_from(">i", reply)
        request, version = self._expected.pop(correlation_id)
        return read_reply(request, version, reply)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return self.receive_exactly(size)

    def receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError(f"closed after {len(data)} of {size} bytes")
            data += part
        return bytes(data)

    def call(self, request: Message, version: int | None = None) -> Any:
        self.send(request, version=version)
        number, response = self.receive()
        assert number == self.sent
        return response

    def is_closed_by_peer(self) -> bool:
        """Wait until the broker closes; False when it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def batch(value: bytes = b"value", count: int = 1, **fields: Any) -> bytes:
    return build_batch([(None, value, (), 1_700_000_000_000)] * count, **fields)


def produce(
    topic: str,
    records: bytes | None = None,
    *,
    acks: int = ACKS_ALL,
    partition: int = 0,
) -> ProduceRequest:
    """A produce of version 12 at most: topics are named."""
    data = PartitionProduceData(index=partition, records=batch() if records is None else records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


PRODUCE_VERSION = 12
FETCH_VERSION = 12


def fetch(
    topic: str,
    offset: int = 0,
    *,
    partitions: tuple[int, ...] = (0,),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 64 * 1024 * 1024,
) -> FetchRequest:
    """A fetch of version 12 at most: topics are named. No session."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes
                    )
                    for index in partitions
                ],
            )
        ],
    )


def create_topic(
    client: RawClient, name: str, partitions: int = 1, configs: dict[str, str] | None = None
) -> UUID:
    """Make a topic; it is ready when this returns."""
    response = client.call(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        CreatableTopicConfig(name=key, value=value)
                        for key, value in (configs or {}).items()
                    ],
                )
            ],
            timeout_ms=10_000,
        )
    )
    (result,) = response.topics
    assert result.error_code == 0, result
    topic_id: UUID = result.topic_id
    return topic_id


def delete_topic(client: RawClient, name: str) -> None:
    response = client.call(
        DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID)], timeout_ms=10_000
        )
    )
    assert [result.error_code for result in response.responses] == [0]


def describe_topic(client: RawClient, name: str) -> Any:
    """What Metadata says about a topic, which is not made on the way."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (topic,) = client.call(request, 12).topics
    return topic


def produce_to(client: RawClient, topic: str, records: bytes | None = None, **options: Any) -> Any:
    """Produce and give the answer for the one partition."""
    response = client.call(produce(topic, records, **options), PRODUCE_VERSION)
    return response.responses[0].partition_responses[0]


def fetch_from(client: RawClient, topic: str, offset: int = 0, **options: Any) -> Any:
    """Fetch and give the answer for the first partition."""
    response = client.call(fetch(topic, offset, **options), FETCH_VERSION)
    return response.responses[0].partitions[0]

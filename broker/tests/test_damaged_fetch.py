"""Damage that a reader finds: what lies around it is served, and the log tells of it once."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    RawClient,
    batch,
    create_topic,
    fetch,
    fetch_from,
    produce_to,
)
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.fetch import FetchRequest
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

BATCH = batch(b"value")
SIZE = len(BATCH)
COUNT = 10
LIST_OFFSETS_VERSION = 7
DAMAGED = 6


def fetch_by_id(topic_id: UUID, offset: int) -> FetchRequest:
    request = fetch("", offset)
    request.topics[0].topic_id = topic_id
    return request


def damage(data_dir: Path, number: int) -> Path:
    """Flip a bit in the records of one batch."""
    segment = data_dir / "topic-0" / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[number * SIZE + 65] ^= 1
    segment.write_bytes(data)
    return segment


@pytest.mark.parametrize("by_id", [True, False])
def test_only_the_damaged_batch_is_withheld(
    tmp_path: Path, by_id: bool, caplog: pytest.LogCaptureFixture
) -> None:
    data_dir = tmp_path / "data"
    with running_broker(data_dir) as broker, RawClient(broker) as client:
        topic_id = create_topic(client, "topic")
        for _ in range(COUNT):
            produce_to(client, "topic", BATCH)
    segment = damage(data_dir, DAMAGED)
    caplog.clear()
    with running_broker(data_dir) as broker, RawClient(broker) as client:
        for offset, count in ((0, DAMAGED), (3, 3), (DAMAGED + 1, 3)):
            assert len(fetch_from(client, "topic", offset).records) == count * SIZE
        for _ in range(20):
            if by_id:
                client.send(fetch_by_id(topic_id, DAMAGED), version=13)
            else:
                client.send(fetch("topic", DAMAGED), version=FETCH_VERSION)
            (result,) = client.receive()[1].responses[0].partitions
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce_to(client, "topic", BATCH).error_code == ErrorCode.NONE
    (line,) = [record.getMessage() for record in caplog.records]
    place = f"{segment}: damaged batch at byte {DAMAGED * SIZE} (offset {DAMAGED})"
    assert line.startswith(f"fetch from topic-0: {place}: the checksum is wrong")
    assert "not opened" not in line


def test_a_search_by_time_tells_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data_dir = tmp_path / "data"
    with running_broker(data_dir) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        produce_to(client, "topic", BATCH)
    segment = damage(data_dir, 0)
    caplog.clear()
    by_time = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="topic", partitions=[ListOffsetsPartition(partition_index=0, timestamp=0)]
            )
        ],
    )
    with running_broker(data_dir) as broker, RawClient(broker) as client:
        for _ in range(20):
            (topic,) = client.call(by_time, LIST_OFFSETS_VERSION).topics
            assert topic.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        f"list offsets of topic-0: {segment}: damaged batch at byte 0 (offset 0)"
    )

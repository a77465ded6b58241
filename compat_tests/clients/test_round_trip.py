"""Every client writes with every codec, every acks and with and without idempotence."""

from __future__ import annotations

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import Broker, MakeTopic
from compat_tests.clients.model import Client, ProducerMode, Record, contents

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

# Idempotence demands acks=all; every client refuses other settings before it connects.
ACKNOWLEDGEMENTS = (("0", False), ("1", False), ("all", False), ("all", True))

MODES = [
    ProducerMode(codec, acks, idempotence)
    for codec in CODECS
    for acks, idempotence in ACKNOWLEDGEMENTS
]

# Long enough, and alike enough, that every codec makes it smaller: librdkafka sends a batch
# uncompressed when compression does not pay.
RECORDS = [
    Record(f"value {number} ".encode() * 20, key=f"key {number % 7}".encode())
    for number in range(60)
]


def reports_offsets(client: Client, mode: ProducerMode) -> bool:
    """kcat does not name what it reports, and with acks=0 nobody is told anything."""
    return client.name != "kcat" and mode.acks != "0"


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_what_is_written_is_read_back(
    broker: Broker, make_topic: MakeTopic, client: Client, mode: ProducerMode
) -> None:
    topic = make_topic()
    deliveries = client.produce(broker.bootstrap, topic, RECORDS, mode=mode)
    read = client.consume(broker.bootstrap, topic, len(RECORDS))
    assert [one.content for one in read] == contents(RECORDS)
    assert [one.offset for one in read] == list(range(len(RECORDS)))
    acknowledged = [one.offset for one in deliveries if one.offset is not None]
    told = range(len(RECORDS)) if reports_offsets(client, mode) else ()
    assert acknowledged == list(told)

    stored = raw.stored_batches(broker.bootstrap, topic)
    assert {batch.codec for batch in stored} == {mode.codec}
    assert {batch.producer_id >= 0 for batch in stored} == {mode.idempotence}
    assert sum(batch.record_count for batch in stored) == len(RECORDS)

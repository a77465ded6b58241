"""A log of groups that Apache Kafka 4.3.1 wrote, read by klamm.

kafka_records.jsonl holds every record of a `__consumer_offsets` with one partition, after these
clients of librdkafka: a static member of a classic group, a member of a consumer group with a
regular expression, and two that only commit, of which one group was deleted again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klamm.coordinator.records import decode_coordinator_record, encode_coordinator_record
from klamm.coordinator.tests.groups import Coordinated
from klamm.wire.errors import ErrorCode

LINES = (Path(__file__).parent / "kafka_records.jsonl").read_text(encoding="utf-8").splitlines()
RECORDS = [
    (bytes.fromhex(line["key"]), None if line["value"] is None else bytes.fromhex(line["value"]))
    for line in map(json.loads, LINES)
]
# The zero is what the client added to a text that is not ASCII.
NOTE = "note ä\0"


@pytest.mark.parametrize(("key", "value"), RECORDS)
def test_what_kafka_wrote_klamm_would_write(key: bytes, value: bytes | None) -> None:
    assert encode_coordinator_record(decode_coordinator_record(key, value)) == (key, value)


def test_klamm_goes_on_where_kafka_was() -> None:
    world = Coordinated()
    for key, value in RECORDS:
        world.coordinator.replay([decode_coordinator_record(key, value)])
    world.coordinator.on_loaded()
    listed = {
        group.group_id: (group.group_type, group.group_state)
        for group in world.coordinator.list_groups()
    }
    assert listed == {
        "classic": ("classic", "Stable"),
        "consumer": ("consumer", "Stable"),
        "simple": ("classic", "Empty"),
    }
    assert world.offsets("simple") == {"t": {0: 7}}
    for group_id in ("classic", "consumer"):
        (topic,) = world.fetch(group_id).topics
        assert [
            (partition.partition_index, partition.committed_offset, partition.metadata)
            for partition in topic.partitions
        ] == [(0, 25, NOTE), (1, 25, "")]
    (member,) = world.coordinator.describe("classic", 6).members
    assert (member.group_instance_id, member.client_id) == ("static", "client")
    described = world.coordinator.describe_consumer_group("consumer")
    assert described.error_code == ErrorCode.NONE
    assert [each.subscribed_topic_regex for each in described.members] == ["(^t.*)"]

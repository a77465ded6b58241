"""What the checker makes of the metadata log, and of records that make no sense."""

from __future__ import annotations

from uuid import UUID

import pytest

from klamm.broker.commands.contents import TOPIC_RESOURCE, BrokerContents
from klamm.broker.commands.stored import CONSUMER_OFFSETS, METADATA, TRANSACTION_STATE
from klamm.broker.metadata.records import encode_metadata_record
from klamm.log.check.contents import Owner
from klamm.wire.messages.stored.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from klamm.wire.records.record import Record
from klamm.wire.schema import Message

FIRST, SECOND, HERE = UUID(int=1), UUID(int=2), UUID(int=1000)


def see(contents: BrokerContents, record: Message, *, applies: bool = True) -> str | None:
    stored = Record(0, 0, None, encode_metadata_record(record), (), -1)
    return contents.see(METADATA, stored, applies=applies)


def partition(topic_id: UUID, index: int = 0) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id, partition_id=index, replicas=[1], isr=[1], leader=1, directories=[HERE]
    )


def policy(topic: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name=topic, name="cleanup.policy", value=value
    )


def test_without_a_metadata_log_nobody_owns_anything() -> None:
    assert BrokerContents().owners() is None


def test_the_partitions_of_all_topics() -> None:
    contents = BrokerContents()
    for record in (
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        TopicRecord(name="kept", topic_id=FIRST),
        partition(FIRST),
        partition(FIRST, 1),
        policy("kept", "compact,delete"),
        TopicRecord(name="gone", topic_id=SECOND),
        partition(SECOND),
        PartitionChangeRecord(topic_id=FIRST, partition_id=1, replicas=[1, 2]),
        RemoveTopicRecord(topic_id=SECOND),
    ):
        assert see(contents, record) is None
    here = frozenset({HERE})
    assert contents.owners() == {
        ("kept", 0): Owner(FIRST, True, (1,), here),
        ("kept", 1): Owner(FIRST, True, (1, 2), here),
    }
    assert see(contents, policy("kept", None)) is None
    assert contents.owners() == {
        ("kept", 0): Owner(FIRST, False, (1,), here),
        ("kept", 1): Owner(FIRST, False, (1, 2), here),
    }


def test_records_that_a_snapshot_has_replaced_are_only_read() -> None:
    contents = BrokerContents()
    assert see(contents, partition(FIRST), applies=False) is None
    assert contents.owners() is None


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (TopicRecord(name="first", topic_id=SECOND), "topic 'first' is there already"),
        (partition(SECOND), "a partition of a topic that is not there"),
        (
            PartitionChangeRecord(topic_id=FIRST, partition_id=7),
            "a change of a partition that is not there",
        ),
        (RemoveTopicRecord(topic_id=SECOND), "the end of a topic that is not there"),
    ],
)
def test_metadata_that_can_not_be_replayed(record: Message, complaint: str) -> None:
    contents = BrokerContents()
    assert see(contents, TopicRecord(name="first", topic_id=FIRST)) is None
    found = see(contents, record)
    assert found is not None
    assert found.startswith(complaint)


@pytest.mark.parametrize("topic", [METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE])
def test_records_that_make_no_sense(topic: str) -> None:
    contents = BrokerContents()
    assert contents.understands(topic)
    for key, value in ((None, None), (b"\x00\x01", b"\x00"), (b"\x00\x00x", b"\x7f\x7f")):
        found = contents.see(topic, Record(0, 0, key, value, (), -1), applies=True)
        assert found is not None
        assert found.startswith("the record can't be understood: ")


def test_a_newer_kind_of_group_is_left_alone() -> None:
    record = Record(0, 0, b"\x00\x0ewhatever", b"whatever", (), -1)
    assert BrokerContents().see(CONSUMER_OFFSETS, record, applies=True) is None
    assert not BrokerContents().understands("topic")

"""The metadata image is the fold of its log, and nothing else."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from klamm.broker.metadata.image import MetadataImage, unified
from klamm.broker.metadata.records import decode_metadata_record, encode_metadata_record
from klamm.broker.metadata.topics import (
    Refused,
    check_new_topic_name,
    check_topic_name,
    choose_replicas,
    partition_records,
    plan_new_partitions,
    removal_record,
    topic_records,
)
from klamm.wire.errors import ErrorCode, WireError
from klamm.wire.messages.stored.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

DIRECTORIES = [UUID(int=98), UUID(int=99)]


def place() -> UUID:
    return DIRECTORIES[0]


NAMES = ["plain", "a.b", "a_b", "c.d.e", "c_d.e", "other"]


def snapshot(image: MetadataImage) -> dict[str, Any]:
    """All that an image says, as plain values."""
    return {
        "topics": {name: dataclasses.asdict(topic) for name, topic in image.topics.items()},
        "by id": {key: dataclasses.asdict(topic) for key, topic in image.topics_by_id.items()},
        "configs": {name: dict(image.topic_configs(name)) for name in NAMES},
        "broker": dict(image.broker_configs("1")),
        "features": dict(image.features),
        "next producer id": image.next_producer_id,
        "version": image.version,
        "partitions": image.partition_count,
        "collisions": {name: image.colliding_topic(name) for name in NAMES},
    }


class Metadata(RuleBasedStateMachine):
    """Random changes, decided as the controller decides them; the log is a list of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.image = MetadataImage()
        self.log: list[bytes] = []
        # What must be there, kept in the simplest way: partitions and configs by name.
        self.partitions: dict[str, int] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.ids = 0

    def commit(self, *records: Any) -> None:
        for record in records:
            self.log.append(encode_metadata_record(record))
            self.image.replay(record)

    @rule(
        name=st.sampled_from(NAMES),
        partitions=st.integers(1, 4),
        configs=st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3)),
    )
    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        if any(unified(each) == unified(name) for each in self.partitions):
            with pytest.raises(Refused) as refused:
                check_new_topic_name(name, self.image)
            exists = name in self.partitions
            assert refused.value.code == (
                ErrorCode.TOPIC_ALREADY_EXISTS if exists else ErrorCode.INVALID_TOPIC_EXCEPTION
            )
            return
        check_new_topic_name(name, self.image)
        self.ids += 1
        replicas = choose_replicas(
            partitions, 1, (), default_partitions=1, default_replication_factor=1, brokers=[1]
        )
        self.commit(*topic_records(name, UUID(int=self.ids), replicas, configs, place))
        self.partitions[name] = partitions
        self.configs[name] = dict(configs)

    @precondition(lambda self: self.partitions)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.partitions)))
        self.commit(removal_record(self.image.topics[name]))
        del self.partitions[name]
        del self.configs[name]

    @precondition(lambda self: self.partitions)
    @rule(data=st.data(), count=st.integers(1, 6))
    def add_partitions(self, data: st.DataObject, count: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.partitions)))
        topic = self.image.topics[name]
        if count <= self.partitions[name]:
            with pytest.raises(Refused) as refused:
                plan_new_partitions(topic, count, None, [1])
            assert refused.value.code == ErrorCode.INVALID_PARTITIONS
            return
        replicas = plan_new_partitions(topic, count, None, [1])
        first = len(topic.partitions)
        self.commit(*partition_records(topic.topic_id, first, replicas, place))
        self.partitions[name] = count

    @precondition(lambda self: self.partitions)
    @rule(data=st.data(), value=st.none() | st.text(max_size=3))
    def configure(self, data: st.DataObject, value: str | None) -> None:
        name = data.draw(st.sampled_from(sorted(self.partitions)))
        self.commit(ConfigRecord(resource_type=2, resource_name=name, name="a", value=value))
        if value is None:
            self.configs[name].pop("a", None)
        else:
            self.configs[name]["a"] = value

    @precondition(lambda self: self.partitions)
    @rule(data=st.data())
    def elect(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.partitions)))
        topic = self.image.topics[name]
        before = [state.leader_epoch for state in topic.partitions]
        self.commit(
            *(
                PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=1)
                for index in range(len(topic.partitions))
            )
        )
        assert [state.leader_epoch for state in topic.partitions] == [epoch + 1 for epoch in before]

    @precondition(lambda self: self.partitions)
    @rule(data=st.data(), directory=st.sampled_from(DIRECTORIES))
    def move(self, data: st.DataObject, directory: UUID) -> None:
        name = data.draw(st.sampled_from(sorted(self.partitions)))
        topic = self.image.topics[name]
        moved = PartitionChangeRecord(
            partition_id=0, topic_id=topic.topic_id, directories=[directory]
        )
        self.commit(moved)
        assert topic.partitions[0].directories == [directory]

    @rule()
    def take_producer_ids(self) -> None:
        self.commit(
            ProducerIdsRecord(
                broker_id=1, broker_epoch=0, next_producer_id=self.image.next_producer_id + 1000
            )
        )

    @invariant()
    def says_what_was_done(self) -> None:
        assert {
            name: len(topic.partitions) for name, topic in self.image.topics.items()
        } == self.partitions
        assert {
            name: dict(self.image.topic_configs(name)) for name in self.partitions
        } == self.configs
        for topic in self.image.topics.values():
            assert self.image.topics_by_id[topic.topic_id] is topic
            assert [state.index for state in topic.partitions] == list(range(len(topic.partitions)))
        held = [
            directory
            for topic in self.image.topics.values()
            for state in topic.partitions
            for directory in state.directories
        ]
        assert +Counter(self.image.directory_sizes) == Counter(held)

    def teardown(self) -> None:
        """A replay of the log gives the same image."""
        replayed = MetadataImage()
        for record in self.log:
            replayed.replay(decode_metadata_record(record))
        assert snapshot(replayed) == snapshot(self.image)


TestMetadata = Metadata.TestCase
TestMetadata.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=30)


def test_a_topic_made_again_has_nothing_of_the_old_one() -> None:
    image = MetadataImage()
    old = topic_records("topic", UUID(int=1), [[1]] * 3, {"a": "1"}, place)
    new = topic_records("topic", UUID(int=2), [[1]], {}, place)
    for record in (*old, RemoveTopicRecord(topic_id=UUID(int=1)), *new):
        image.replay(record)
    assert image.topics["topic"].topic_id == UUID(int=2)
    assert len(image.topics["topic"].partitions) == 1
    assert image.topic_configs("topic") == {}
    assert list(image.topics_by_id) == [UUID(int=2)]


def test_an_unknown_record_is_not_passed_over() -> None:
    """A newer version may have written it: going on without it could do harm."""
    with pytest.raises(AssertionError, match="is not part of the image"):
        MetadataImage().replay(object())


def test_records_are_framed_as_kafka_frames_them() -> None:
    """Frame version 1, then the record's number and version, each a varint."""
    record = FeatureLevelRecord(name="metadata.version", feature_level=25)
    encoded = encode_metadata_record(record)
    assert encoded[:3] == bytes([1, FeatureLevelRecord.API_KEY, 0])
    assert decode_metadata_record(encoded) == record


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02\x0c\x00",
        b"\x01",
        b"\x01\x0c",
        b"\x01\x7f\x00",
        b"\x01\x0c\x63",
        b"\x80\x80\x80\x80\x80\x80",
        encode_metadata_record(TopicRecord(name="x", topic_id=UUID(int=1))) + b"\0",
        encode_metadata_record(TopicRecord(name="x", topic_id=UUID(int=1)))[:-1],
    ],
)
def test_bytes_that_are_no_record_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_metadata_record(data)


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 249, "...", "-"])
def test_legal_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "grün", "a\n", "a:b"])
def test_illegal_names(name: str) -> None:
    with pytest.raises(Refused) as refused:
        check_topic_name(name)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION

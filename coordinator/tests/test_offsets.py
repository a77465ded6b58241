"""Commits, fetches and deletions of offsets: what is stored, and who is refused with which code."""

from __future__ import annotations

import pytest

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.groups import Coordinated, codes, only
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from klamm.wire.messages.stored.classic_group import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from klamm.wire.schema import ZERO_UUID

ALL_VERSIONS = range(2, 11)


@pytest.fixture
def world() -> Coordinated:
    coordinated = Coordinated()
    coordinated.topics.add("t", 4)
    coordinated.topics.add("u", 2)
    return coordinated


# --- commit ---


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_simple_consumer_commits_in_every_version(world: Coordinated, version: int) -> None:
    response = world.commit("g", {"t": {0: 5, 3: 7}}, version=version, leader_epoch=2)
    assert codes(response) == {"t": {0: ErrorCode.NONE, 3: ErrorCode.NONE}}
    assert world.offsets("g") == {"t": {0: 5, 3: 7}}
    group = world.groups["g"]
    assert (group.TYPE, group.state_name, group.protocol_type) == ("classic", "Empty", "")


def test_what_is_stored_of_a_commit(world: Coordinated) -> None:
    world.commit("g", {"t": {1: 5}}, metadata="note", leader_epoch=3)
    record = only(world.journal.records)
    assert record.key == OffsetCommitKey(group="g", topic="t", partition=1)
    assert record.value_version == 4
    assert record.value == OffsetCommitValue(
        offset=5,
        leader_epoch=3,
        metadata="note",
        commit_timestamp=world.EPOCH_MS,
        topic_id=world.topics.find("t").topic_id,  # type: ignore[union-attr]
    )


def test_null_metadata_is_stored_as_none_at_all(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}}, metadata=None)
    (topic,) = world.fetch("g").topics
    assert topic.partitions[0].metadata == ""


def test_a_retention_time_is_stored_in_the_version_that_has_one(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}}, version=2, retention_ms=60_000)
    record = only(world.journal.records)
    assert record.value_version == 1
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.expire_timestamp == world.EPOCH_MS + 60_000
    assert record.value.topic_id == ZERO_UUID


def test_one_request_is_one_batch(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 2}, "u": {0: 3}})
    assert [len(batch) for batch in world.journal.batches] == [3]


def test_topics_and_partitions_that_do_not_exist_are_refused_one_by_one(
    world: Coordinated,
) -> None:
    response = world.commit("g", {"t": {0: 1, 4: 2, -1: 3}, "none": {0: 4}, "u": {1: 5}})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(response) == {
        "t": {4: unknown, -1: unknown, 0: ErrorCode.NONE},
        "none": {0: unknown},
        "u": {1: ErrorCode.NONE},
    }
    assert world.offsets("g") == {"t": {0: 1}, "u": {1: 5}}


def test_an_unknown_topic_id_has_its_own_code(world: Coordinated) -> None:
    response = world.commit("g", {"t": {0: 1}, "none": {0: 2}}, version=10)
    refused, accepted = response.topics
    assert (refused.topic_id, refused.partitions[0].error_code) == (
        ZERO_UUID,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
    assert accepted.topic_id == world.topics.find("t").topic_id  # type: ignore[union-attr]
    assert accepted.partitions[0].error_code == ErrorCode.NONE


def test_if_nothing_exists_no_group_is_asked(world: Coordinated) -> None:
    response = world.commit("g", {"none": {0: 1}}, generation=5, member_id="nobody")
    assert codes(response) == {"none": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}
    assert world.groups == {}
    assert world.commit("g", {}).topics == []


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 10, ErrorCode.NONE),
        ("x" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("ä" * 10, ErrorCode.NONE),
        # Two of Java's characters each.
        ("\N{GRINNING FACE}" * 5, ErrorCode.NONE),
        ("\N{GRINNING FACE}" * 6, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_measured_in_java_characters(metadata: str, code: ErrorCode) -> None:
    world = Coordinated(GroupSettings(offset_metadata_max_bytes=10))
    world.topics.add("t", 1)
    assert codes(world.commit("g", {"t": {0: 1}}, metadata=metadata)) == {"t": {0: code}}
    assert bool(world.offsets("g")) == (code is ErrorCode.NONE)


def test_too_much_metadata_refuses_its_partition_only(world: Coordinated) -> None:
    long, short = "x" * 5000, ""
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=1, committed_metadata=metadata
                    )
                    for index, metadata in ((0, long), (1, short))
                ],
            )
        ],
    )
    assert codes(world.send_commit(request, 9)) == {
        "t": {0: ErrorCode.OFFSET_METADATA_TOO_LARGE, 1: ErrorCode.NONE}
    }
    assert world.offsets("g") == {"t": {1: 1}}


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (8, ErrorCode.ILLEGAL_GENERATION),
        (9, ErrorCode.GROUP_ID_NOT_FOUND),
        (10, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_generation_of_no_group(world: Coordinated, version: int, code: ErrorCode) -> None:
    response = world.commit("g", {"t": {0: 1}}, version=version, generation=1, member_id="m")
    assert codes(response) == {"t": {0: code}}
    assert world.groups == {}


def test_a_refusal_of_the_group_concerns_all_that_exists(world: Coordinated) -> None:
    member_id = world.become_member("g")
    response = world.commit(
        "g", {"t": {0: 1, 9: 1}, "u": {0: 1}}, generation=0, member_id=member_id
    )
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert codes(response) == {
        "t": {9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0: illegal},
        "u": {0: illegal},
    }
    assert world.offsets("g") == {}


def test_a_member_commits_and_stays_alive_by_that(world: Coordinated) -> None:
    member_id = world.become_member("g")
    for offset in range(4):
        world.timers.advance(9_000)
        response = world.commit("g", {"t": {0: offset}}, generation=1, member_id=member_id)
        assert codes(response) == {"t": {0: ErrorCode.NONE}}
    world.timers.advance(10_000)
    response = world.commit("g", {"t": {0: 9}}, generation=1, member_id=member_id)
    assert codes(response) == {"t": {0: ErrorCode.UNKNOWN_MEMBER_ID}}
    assert world.offsets("g") == {"t": {0: 3}}


def test_a_refused_append_leaves_no_trace(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.journal.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    response = world.commit("g", {"t": {0: 2, 1: 2}})
    refused = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert codes(response) == {"t": {0: refused, 1: refused}}
    assert world.offsets("g") == {"t": {0: 1}}
    world.journal.refuse()
    world.commit("new", {"t": {0: 2}})
    assert "new" not in world.groups


def test_the_last_of_two_mentions_counts(world: Coordinated) -> None:
    partitions = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        for offset in (1, 2)
    ]
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)]
    )
    assert len(world.send_commit(request, 9).topics[0].partitions) == 2
    assert world.offsets("g") == {"t": {0: 2}}


# --- fetch ---


def test_what_was_not_committed_is_minus_one(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5}}, metadata="m", leader_epoch=2)
    for group_id in ("g", "unknown"):
        (topic,) = world.fetch(group_id, {"t": [1]}).topics
        (partition,) = topic.partitions
        assert (partition.committed_offset, partition.committed_leader_epoch) == (-1, -1)
        assert (partition.metadata, partition.error_code) == ("", ErrorCode.NONE)
    (topic,) = world.fetch("g", {"t": [0]}).topics
    (partition,) = topic.partitions
    assert (partition.committed_offset, partition.committed_leader_epoch) == (5, 2)
    assert partition.metadata == "m"


def test_all_topics(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 5, 1: 6}, "u": {1: 7}})
    assert world.offsets("g") == {"t": {0: 5, 1: 6}, "u": {1: 7}}
    assert world.offsets("unknown") == {}


def test_a_fetch_shows_one_moment(world: Coordinated) -> None:
    """A commit between two steps of a fetch is not seen, nor is half of it."""
    world.commit("g", {"t": {0: 1, 1: 1}})
    response = OffsetFetchResponseGroup(group_id="g")
    steps = world.coordinator.fetch_offsets(
        OffsetFetchRequestGroup(group_id="g", topics=None), response
    )
    next(steps)
    world.commit("g", {"t": {0: 2, 1: 2}, "u": {0: 2}})
    for _ in steps:
        pass
    (topic,) = response.topics
    assert [partition.committed_offset for partition in topic.partitions] == [1, 1]


def test_an_offset_of_an_earlier_topic_of_the_name_is_not_shown_to_those_who_know_the_id(
    world: Coordinated,
) -> None:
    world.commit("g", {"t": {0: 5}})
    world.topics.remove("t")
    new = world.topics.add("t", 1)
    for topic_id, expected in ((new.topic_id, -1), (ZERO_UUID, 5)):
        response = OffsetFetchResponseGroup(group_id="g")
        asked = OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0])
        for _ in world.coordinator.fetch_offsets(
            OffsetFetchRequestGroup(group_id="g", topics=[asked]), response
        ):
            pass
        (topic,) = response.topics
        assert (topic.topic_id, topic.partitions[0].committed_offset) == (topic_id, expected)


# --- delete ---


def test_delete(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 2}, "u": {0: 3}})
    response = world.delete_offsets("g", {"t": [0, 3], "u": [0]})
    assert codes(response) == {
        "t": {0: ErrorCode.NONE, 3: ErrorCode.NONE},
        "u": {0: ErrorCode.NONE},
    }
    assert world.offsets("g") == {"t": {1: 2}}
    assert [record.value for record in world.journal.batches[-1]] == [None, None]
    assert "g" in world.groups


def test_delete_of_what_is_not_there_writes_nothing(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1}})
    world.delete_offsets("g", {"u": [0]})
    world.delete_offsets("g", {})
    assert len(world.journal.batches) == 1


def test_a_subscribed_topic_keeps_its_offsets(world: Coordinated) -> None:
    member_id = world.become_member("g")
    world.commit("g", {"t": {0: 1}, "u": {0: 1}}, generation=1, member_id=member_id)
    response = world.delete_offsets("g", {"t": [0], "u": [0]})
    assert codes(response) == {
        "t": {0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC},
        "u": {0: ErrorCode.NONE},
    }
    assert world.offsets("g") == {"t": {0: 1}}


def test_who_may_not_delete(world: Coordinated) -> None:
    with pytest.raises(CoordinatorError) as caught:
        world.delete_offsets("unknown", {"t": [0]})
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    world.become_member("connect", protocol_type="connect")
    with pytest.raises(CoordinatorError) as caught:
        world.delete_offsets("connect", {"t": [0]})
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP


def test_very_many_are_deleted_in_pieces(world: Coordinated) -> None:
    world.topics.add("big", 1200)
    world.commit("g", {"big": dict.fromkeys(range(1200), 1)})
    world.delete_offsets("g", {"big": list(range(1200))})
    assert world.offsets("g") == {}
    assert [len(batch) for batch in world.journal.batches] == [1200, 500, 500, 200]


# --- replay ---


def test_offsets_survive_a_restart(world: Coordinated) -> None:
    world.commit("g", {"t": {0: 1, 1: 2}}, metadata="m")
    world.commit("g", {"t": {0: 3}})
    world.delete_offsets("g", {"t": [1]})
    world.restart()
    assert world.offsets("g") == {"t": {0: 3}}


def test_a_record_of_before_kafka_0_9(world: Coordinated) -> None:
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=0)
    value = LegacyOffsetCommitValue(offset=4, metadata="m", commit_timestamp=1)
    world.coordinator.replay([CoordinatorRecord(key, value)])
    assert world.offsets("g") == {"t": {0: 4}}
    world.coordinator.replay([CoordinatorRecord(key, None)])
    assert world.offsets("g") == {}

"""Records that other versions have written, in any state in which compaction may leave them."""

from __future__ import annotations

from uuid import UUID

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.replay import RECORD_KEYS
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.records import RECORD_TYPES
from klamm.coordinator.tests.consumer.script import Script
from klamm.coordinator.tests.consumer.world import World
from klamm.wire.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)

FOO = UUID(int=1)


def loaded(*written: CoordinatorRecord) -> World:
    world = World()
    world.fakes.topics.add("foo", 2)
    world.fakes.journal.batches.append(list(written))
    world.load()
    world.consumer.on_loaded()
    return world


def group_of(world: World) -> ConsumerGroup:
    group = world.fakes.groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def member_at(epoch: int, state: int = 0, *, epochs: list[int] | None) -> list[CoordinatorRecord]:
    return [
        CoordinatorRecord(
            ConsumerGroupMemberMetadataKey(group_id="g", member_id="a"),
            ConsumerGroupMemberMetadataValue(
                client_id="a",
                client_host="/127.0.0.1",
                subscribed_topic_names=["foo"],
                subscribed_topic_regex=None,
                rebalance_timeout_ms=60_000,
                server_assignor=None,
                instance_id=None,
                rack_id=None,
                classic_member_metadata=None,
            ),
        ),
        CoordinatorRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"),
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=epoch,
                previous_member_epoch=epoch,
                state=state,
                assigned_partitions=[
                    TopicPartitions(topic_id=FOO, partitions=[0, 1], assignment_epochs=epochs)
                ],
            ),
        ),
    ]


def test_all_keys_are_replayed() -> None:
    consumer_types = (3, 4, 5, 6, 7, 8, 16)
    assert {RECORD_TYPES[number][0] for number in consumer_types} == RECORD_KEYS


def test_partition_metadata_of_older_brokers_goes_with_the_next_comparison() -> None:
    world = loaded(
        records.epoch_record("g", 3, 0),
        CoordinatorRecord(
            ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue()
        ),
        *member_at(3, epochs=None),
    )
    assert group_of(world).has_partition_metadata
    script = Script(world)
    script.topic_ids["foo"] = FOO
    assert script.run("beat a epoch=3")[:2] == ["+ epoch 4 hash=foo", "- partition metadata"]
    assert not group_of(world).has_partition_metadata


def test_partitions_without_epochs_have_that_of_the_member() -> None:
    assert group_of(loaded(*member_at(3, epochs=None))).members["a"].assigned == {FOO: {0: 3, 1: 3}}
    assert group_of(loaded(*member_at(3, epochs=[1]))).members["a"].assigned == {FOO: {0: 3, 1: 3}}
    assert group_of(loaded(*member_at(3, epochs=[1, 2]))).members["a"].assigned == {
        FOO: {0: 1, 1: 2}
    }
    away = group_of(loaded(*member_at(-2, epochs=None)))
    assert away.members["a"].assigned == {FOO: {0: 0, 1: 0}}


def test_a_member_in_an_unknown_state_begins_anew() -> None:
    world = loaded(
        records.epoch_record("g", 3, 0),
        records.target_epoch_record("g", 3, 0),
        *member_at(2, state=99, epochs=None),
    )
    assert group_of(world).members["a"].state is MemberState.UNKNOWN
    script = Script(world)
    script.topic_ids["foo"] = FOO
    (answer, _) = script.run("beat a epoch=2")
    assert answer.startswith("< a FENCED_MEMBER_EPOCH 'The consumer group member is in a unknown")
    assert script.run("join a foo")[-2:] == [
        "< a epoch=4 assignment=foo:0-1",
        "= Stable epoch=4/4",
    ]


def test_a_target_without_a_time_need_not_wait() -> None:
    """Brokers before 4.3 did not store it."""
    world = loaded(
        records.epoch_record("g", 4, 0),
        CoordinatorRecord(
            ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3),
        ),
        *member_at(3, epochs=None),
    )
    script = Script(world)
    script.topic_ids["foo"] = FOO
    assert "+ target epoch 5" in script.run("beat a epoch=3")


def test_a_clock_that_was_set_back_does_not_hold_up_a_group() -> None:
    world = loaded(
        records.epoch_record("g", 4, 0),
        records.target_epoch_record("g", 3, World().shard.now_ms() + 3_600_000),
        *member_at(3, epochs=None),
    )
    script = Script(world)
    script.topic_ids["foo"] = FOO
    assert "+ target epoch 5" in script.run("beat a epoch=3")


def test_tombstones_of_what_is_not_there() -> None:
    group = ConsumerGroup("g", members={"a": ConsumerMember("a")})
    for record in group.tombstones():
        assert not loaded(record).fakes.groups


def test_tombstones_of_a_consumer_group_leave_a_classic_group_alone() -> None:
    world = World()
    script = Script(world)
    script.run("classic-join x range:foo v=3")
    group = ConsumerGroup("g", members={"a": ConsumerMember("a")})
    world.fakes.journal.append(group.tombstones())
    assert isinstance(world.fakes.groups["g"], ClassicGroup)


def test_a_record_of_a_consumer_group_replaces_a_classic_group() -> None:
    """The tombstone of the classic group may be gone by compaction."""
    world = World()
    Script(world).run("classic-join x range:foo v=3")
    world.fakes.journal.append([records.epoch_record("g", 3, 0)])
    assert group_of(world).group_epoch == 3

"""What the settings of a broker do to groups: a pair of brokers with small bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from compat_tests.conftest import KAFKA_COMPARED_PROPERTIES
from compat_tests.twin.brokers import pair_of_brokers
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.groups import Group, Member
from compat_tests.twin.requests import Committed, offset_commit, offset_fetch
from compat_tests.twin.test_find_coordinator import SHARE, find
from compat_tests.twin.topics import Twin

DELAY_MS = 400
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignors": "range",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.max.size": "2",
    "group.consumer.migration.policy": "disabled",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": str(DELAY_MS),
    "group.max.size": "2",
    "group.min.session.timeout.ms": "500",
    "offset.metadata.max.bytes": "10",
    "offsets.retention.check.interval.ms": "300",
    "offsets.topic.num.partitions": "3",
    # A batch is not larger than a segment: so both refuse what klamm takes otherwise (D-019).
    "offsets.topic.segment.bytes": "1048576",
}
OF_KAFKA_ALONE = {
    key: value for key, value in KAFKA_COMPARED_PROPERTIES.items() if key.endswith(".enable")
}


@pytest.fixture(scope="module")
def twin(kafka_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    folder = tmp_path_factory.mktemp("group-settings")
    with pair_of_brokers(folder, SETTINGS, of_kafka_alone=OF_KAFKA_ALONE) as pair:
        yield pair


@pytest.fixture(scope="module")
def coordinated(twin: Twin) -> Twin:
    """The first who asks for a coordinator makes the topic of offsets come into being."""
    body = {"key_type": 0, "coordinator_keys": ["a"]}
    twin.control.ask("find_coordinator", 6, body, deviation="D-016")
    twin.wait_until_groups_are_served()
    twin.control.ask("metadata", 12, {"topics": [{"name": "__consumer_offsets"}]})
    return twin


@pytest.fixture
def group(coordinated: Twin) -> Iterator[Group]:
    """A group with an offset: without one it might end between any two requests."""
    with closing(Group(coordinated)) as made:
        topic = coordinated.create_topic()
        coordinated.control.ask("offset_commit", 9, offset_commit(made.id, (topic, {0: 1})))
        yield made


@pytest.fixture
def fleeting(coordinated: Twin) -> Iterator[Group]:
    """A group that ends as soon as nobody is in it."""
    with closing(Group(coordinated)) as made:
        yield made


@pytest.mark.every_version("find_coordinator", since=6)
def test_shares(twin: Twin, version: int) -> None:
    """Kafka makes their topic when it is asked, and klamm does not know them."""
    with twin.conversation() as talk:
        body = find("group:AAAAAAAAAAAAAAAAAAAAAQ:0", kind=SHARE)
        talk.ask("find_coordinator", version, body, deviation="D-013")


def join_in_turn(group: Group, first: Member, second: Member) -> None:
    """Both wait for an answer, and the first one was first."""
    first.join()
    first.send("join_group", first.joining())
    group.wait_for_size(1)
    second.join()
    second.send("join_group", second.joining())


def test_the_first_rebalance_waits_for_more_members(group: Group) -> None:
    first, second = group.member("first"), group.member("second")
    join_in_turn(group, first, second)
    assert first.is_silent(DELAY_MS / 1000 / 4)
    group.receive_joins(first, second)
    assert first.generation == second.generation == 1
    group.sync(first, second)


def test_a_classic_group_that_is_full(group: Group) -> None:
    first, second, third = (group.member(name) for name in ("first", "second", "third"))
    join_in_turn(group, first, second)
    group.receive_joins(first, second)
    group.sync(first, second)
    third.join()
    third.join()
    static = group.member("static", instance="one")
    static.join()
    static.join(4)
    first.heartbeat()
    assert group.size() == 2


def test_a_consumer_group_that_is_full(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic()
    for name in ("first", "second", "third"):
        consumer_group.member(name).join([topic])
    assert len(consumer_group.describe()["members"]) == 2


def test_a_consumer_whose_session_ends(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic(partitions=2)
    member, silent = consumer_group.member("member"), consumer_group.member("silent")
    member.join([topic])
    silent.join([topic])
    member.settle(1, silent)
    consumer_group.beat_until_gone(member, 1)
    silent.beat(rules={"error_message": lambda kafka, other: bool(kafka and other)})
    # The last heartbeat may have told it on one side alone.
    member.beat_until({topic: [0, 1]})
    member.settle(2)
    assert member.assigned == {topic: [0, 1]}


def test_the_interval_and_the_assignor_that_are_told(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic()
    pair = consumer_group.member("first").join([topic])
    assert pair.kafka["heartbeat_interval"] == 200
    consumer_group.member("second").join([topic], server_assignor="uniform")
    assert consumer_group.describe()["assignor_name"] == "range"


def test_groups_are_not_converted(group: Group, coordinated: Twin) -> None:
    classic = group.member("classic")
    classic.enter()
    classic.sync({classic: b"all"})
    modern = ConsumerGroup(coordinated, group.id)
    modern.member("modern").join(["a topic"])
    classic.heartbeat()
    modern.close()


def test_a_classic_member_in_a_consumer_group(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic()
    consumer_group.member("modern").join([topic])
    classic = Group(consumer_group.twin)
    classic.id = consumer_group.id
    member = classic.member("classic")
    for _ in range(2):
        member.join()
    classic.close()


def test_metadata_of_commits(coordinated: Twin, group: Group) -> None:
    topic = coordinated.create_topic(partitions=2)
    partitions = {0: Committed(1, "x" * 10), 1: Committed(2, "x" * 11)}
    coordinated.control.ask("offset_commit", 9, offset_commit(group.id, (topic, partitions)))
    coordinated.control.ask("offset_fetch", 9, offset_fetch((group.id, None)))


@pytest.mark.every_version("offset_commit", until=4)
def test_offsets_with_a_time_of_their_own_expire(
    coordinated: Twin, fleeting: Group, version: int
) -> None:
    """The group is no more when nothing is left of it."""
    topic = coordinated.create_topic(partitions=2)
    commit = offset_commit(fleeting.id, (topic, {0: 1, 1: 2}), retention_time=1)
    coordinated.control.ask("offset_commit", version, commit)
    asked = offset_fetch((fleeting.id, None))
    coordinated.wait(*("offset_fetch", 9, asked), lambda reply: reply["groups"][0]["topics"] == [])
    coordinated.control.ask("offset_fetch", 9, asked)
    fleeting.wait_for_state("Dead")
    fleeting.describe()


def test_an_empty_group_without_offsets_ends(fleeting: Group) -> None:
    member = fleeting.member()
    member.join(3)
    member.sync({member: b"all"})
    member.leave()
    fleeting.wait_for_state("Dead")
    fleeting.describe()
    member.heartbeat()


def test_an_empty_group_with_offsets_stays(group: Group, fleeting: Group) -> None:
    member = group.member()
    member.enter()
    member.sync({member: b"all"})
    member.leave()
    fleeting.member().join(3, session_timeout=900)
    fleeting.wait_for_state("Dead")
    assert group.describe()["group_state"] == "Empty"


def test_an_assignment_larger_than_a_segment(group: Group) -> None:
    """Nothing can be stored, so nothing has happened, and the group is not stuck."""
    leader, second = group.member("leader"), group.member("second")
    leader.enter()
    group.gather(second)
    group.rejoin(leader, second)
    second.send("sync_group")
    leader.sync({leader: bytes(2_000_000), second: b"2"})
    second.receive("sync_group")
    group.describe()
    leader.heartbeat()
    leader.send("join_group", leader.joining())
    second.send("join_group", second.joining())
    group.receive_joins(leader, second)
    group.sync(leader, second)
    group.describe()

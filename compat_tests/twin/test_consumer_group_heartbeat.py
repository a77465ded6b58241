"""ConsumerGroupHeartbeat (KIP-848): joining, reconciling and leaving by heartbeats alone."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import ZERO_UUID
from compat_tests.twin.consumer_groups import ConsumerGroup, topic_partitions
from compat_tests.twin.topics import Twin

REBALANCE_MS = 30_000


@pytest.mark.every_version("consumer_group_heartbeat")
def test_a_life_in_a_group(consumer_group: ConsumerGroup, version: int) -> None:
    topic = consumer_group.create_topic(partitions=3)
    member = consumer_group.member("only")
    member.join([topic], version)
    consumer_group.describe()
    member.beat(version)
    member.own(version=version)
    assert member.assigned == {topic: [0, 1, 2]}
    assert consumer_group.describe()["group_state"] == "Stable"
    member.leave(version)
    consumer_group.describe()
    member.beat(version)
    member.leave(version)


def test_the_broker_chooses_an_id(twin: Twin, consumer_group: ConsumerGroup) -> None:
    """In version 0 a member may come without one; later that is a mistake (KIP-1082)."""
    topic = consumer_group.create_topic()
    member = consumer_group.member("")
    pair = member.join([topic], 0, rules={"member_id": lambda kafka, other: bool(kafka and other)})
    for side in twin.sides:
        assert len(pair[side]["member_id"]) == 22
    consumer_group.member("").join([topic], 1)


def test_two_members_reconcile(consumer_group: ConsumerGroup) -> None:
    """The second one gets nothing before the first one has given it away."""
    topic = consumer_group.create_topic(partitions=3)
    first, second = consumer_group.member("first"), consumer_group.member("second")
    first.join([topic])
    first.own()
    second.join([topic])
    assert second.assigned == {}
    consumer_group.describe()
    first.beat()
    assert len(first.assigned[topic]) == 2
    second.beat()
    consumer_group.describe()
    first.own()
    consumer_group.describe()
    second.beat()
    assert len(second.assigned[topic]) == 1
    second.own()
    assert consumer_group.describe()["group_state"] == "Stable"
    for member in (first, second):
        member.beat()


@pytest.mark.every_version("consumer_group_heartbeat")
def test_bad_requests(consumer_group: ConsumerGroup, version: int) -> None:
    """Each with the words that Kafka has for it: they are what an administrator sees."""
    topic = consumer_group.create_topic()
    joining: dict[str, Any] = {
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
        "rebalance_timeout": REBALANCE_MS,
        "member_epoch": 0,
    }
    owned = topic_partitions({topic: [0]})
    bad: list[dict[str, Any]] = [
        {"group_id": ""},
        {"group_id": "  "},
        {"member_id": "  "},
        {"member_id": "", "member_epoch": 1},
        {"instance_id": ""},
        {"instance_id": "  "},
        {"rack_id": ""},
        {"rack_id": "  "},
        {"rebalance_timeout": -1},
        {"rebalance_timeout": 0},
        {"rebalance_timeout": -5},
        {"topic_partitions": None},
        {"topic_partitions": owned},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": []},
        {"server_assignor": ""},
        {"server_assignor": "bogus"},
        {"server_assignor": "Range"},
        {"member_epoch": 1},
        {"member_epoch": -1},
        {"member_epoch": -2},
        {"member_epoch": -2, "instance_id": "one"},
        {"member_epoch": -1, "instance_id": "one"},
        {"member_epoch": -3},
        {"member_epoch": -3, "instance_id": "one"},
        {"member_epoch": (1 << 31) - 1},
        {"member_id": "x" * 5000},
        {"subscribed_topic_regex": "a(", "subscribed_topic_names": None},
        {"subscribed_topic_regex": "", "subscribed_topic_names": None},
        {"group_id": "", "server_assignor": "bogus", "member_epoch": -5},
    ]
    with all_cases() as cases:
        for number, fields in enumerate(bad):
            if version >= 1 or "subscribed_topic_regex" not in fields:
                with cases.case(str(fields)[:120]):
                    member = consumer_group.member(f"member {number}")
                    member.beat(version, **{**joining, **fields})
                    member.leave(version)
    consumer_group.describe()


def test_topics_that_are_not_there(twin: Twin, consumer_group: ConsumerGroup) -> None:
    """One may subscribe to what does not exist yet, and gets it when it comes."""
    known, unknown = consumer_group.create_topic(partitions=2), twin.unused_name("later")
    member = consumer_group.member("only")
    member.join([unknown])
    consumer_group.describe()
    member.beat(subscribed_topic_names=[unknown, known, known])
    member.own()
    consumer_group.describe()
    new = {"name": unknown, "num_partitions": 2, "replication_factor": 1}
    pair = twin.control.ask("create_topics", 7, {"topics": [new], "timeout": 10_000}, compare=False)
    for side in twin.sides:
        side.learn(pair[side])
    twin.wait_until_led(unknown, 2)
    consumer_group.wait_until_assignable(unknown, 2)
    member.beat_until({known: [0, 1], unknown: [0, 1]})
    member.beat()
    consumer_group.describe()


def test_names_that_no_topic_can_have(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic()
    for number, names in enumerate(([""], ["a b"], ["x" * 300], [topic, ""])):
        consumer_group.member(f"member {number}").join(names)
    consumer_group.describe()


def test_a_subscription_that_changes(consumer_group: ConsumerGroup) -> None:
    first, second = (
        consumer_group.create_topic(partitions=2),
        consumer_group.create_topic(partitions=2),
    )
    member = consumer_group.member("only")
    member.join([first])
    member.own()
    member.beat(subscribed_topic_names=[second])
    consumer_group.describe()
    member.own({})
    member.beat()
    member.own()
    consumer_group.describe()
    member.beat(subscribed_topic_names=[])
    consumer_group.describe()


def test_epochs_that_do_not_fit(consumer_group: ConsumerGroup) -> None:
    """One behind is forgiven to a member that owns no more than it had: its reply was lost."""
    topic = consumer_group.create_topic(partitions=2)
    member = consumer_group.member("only")
    member.join([topic])
    member.own()
    before = member.epoch
    consumer_group.member("other").join([topic])
    member.beat()
    member.own()
    assert member.epoch == before + 1
    for fields in (
        {"member_epoch": before + 2},
        {"member_epoch": 99},
        {"member_epoch": before - 1},
        {"member_epoch": before},
        {"member_epoch": before, "topic_partitions": topic_partitions({topic: [0, 1]})},
        {"member_epoch": before, "topic_partitions": topic_partitions({topic: [0]})},
        {"member_epoch": before, "topic_partitions": []},
    ):
        consumer_group.member("only").beat(**fields)
    stranger = consumer_group.member("stranger")
    for epoch in (1, 2, 3):
        stranger.beat(member_epoch=epoch)
    stranger.leave()
    stranger.leave(epoch=-2)


def test_joining_again_with_epoch_zero(consumer_group: ConsumerGroup) -> None:
    """It has forgotten everything, and is told everything again."""
    topic = consumer_group.create_topic(partitions=2)
    member = consumer_group.member("only")
    member.join([topic])
    member.own()
    member.join([topic])
    member.own()
    member.join([topic], rack_id="rack 2")
    consumer_group.describe()


def test_owning_what_was_not_assigned(consumer_group: ConsumerGroup) -> None:
    topic, other = (
        consumer_group.create_topic(partitions=2),
        consumer_group.create_topic(partitions=1),
    )
    member = consumer_group.member("only")
    member.join([topic])
    for owned in ({other: [0]}, {topic: [0]}, {topic: [0, 1, 2]}, {}, {topic: [-1]}):
        member.own(owned)
    member.beat(topic_partitions=[{"topic_id": ZERO_UUID, "partitions": [0]}])
    consumer_group.describe()


def test_a_full_heartbeat_is_answered_in_full(consumer_group: ConsumerGroup) -> None:
    """Who says everything is told everything; others are told only what is new."""
    topic = consumer_group.create_topic(partitions=2)
    member = consumer_group.member("only")
    member.join([topic])
    member.own()
    assert member.beat().kafka["assignment"] is None
    assert member.own().kafka["assignment"] is None
    full = member.own(subscribed_topic_names=[topic], rebalance_timeout=REBALANCE_MS)
    assert full.kafka["assignment"] is not None


def test_a_member_that_does_not_give_back(twin: Twin, consumer_group: ConsumerGroup) -> None:
    """It has its rebalance timeout for that, and is put out afterwards."""
    topic = consumer_group.create_topic(partitions=2)
    slow, other = consumer_group.member("slow"), consumer_group.member("other")
    slow.join([topic], rebalance_timeout=600)
    slow.own()
    other.join([topic])
    slow.beat()
    twin.wait(
        *("consumer_group_describe", 1, {"group_ids": [consumer_group.id]}),
        lambda reply: len(reply["groups"][0]["members"]) == 1,
    )
    slow.beat()
    slow.own()
    other.beat()
    other.own()
    consumer_group.describe()

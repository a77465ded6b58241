"""Subscriptions by regular expression (KIP-848), which the broker resolves."""

from __future__ import annotations

import pytest

from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.may_differ import anything
from compat_tests.twin.topics import Twin

# It is resolved in the background: nobody knows with which heartbeat the epoch rises.
EPOCHS = {
    "groups[].group_epoch": anything,
    "groups[].assignment_epoch": anything,
    "groups[].members[].member_epoch": anything,
}


def test_a_regular_expression(twin: Twin, consumer_group: ConsumerGroup) -> None:
    stem = twin.unused_name("regex")
    first, second = (
        consumer_group.create_topic(f"{stem}-a"),
        consumer_group.create_topic(f"{stem}-b"),
    )
    member = consumer_group.member("only")
    member.join(None, subscribed_topic_regex=f"{stem}-.*")
    member.beat_until({first: [0], second: [0]})
    consumer_group.describe(rules=EPOCHS)
    member.beat(subscribed_topic_regex=f"{stem}-a.*", compare=False)
    member.beat_until({first: [0]})
    member.beat(subscribed_topic_regex="", subscribed_topic_names=[second], compare=False)
    member.beat_until({second: [0]})
    member.own(compare=False)
    consumer_group.describe(rules=EPOCHS)


def test_an_expression_and_names(twin: Twin, consumer_group: ConsumerGroup) -> None:
    stem = twin.unused_name("regex")
    first, second = (
        consumer_group.create_topic(f"{stem}-a"),
        consumer_group.create_topic(f"{stem}-b"),
    )
    member = consumer_group.member("only")
    member.join([second], subscribed_topic_regex=f"{stem}-a.*")
    member.beat_until({first: [0], second: [0]})
    consumer_group.describe(rules=EPOCHS)


@pytest.mark.parametrize(
    "regex",
    [
        *("(", "[", "*", "a**", "(?<n", "a{2,1}", "\\", "\\1", "(?=a)", "(?!a)", "a++"),
        *("(a+)+$", "(?P<x>a)", "(?i)A", "\\p{L}+", "\\d+", "^a$", "a|b", "no-such-.*"),
        "x{1001}",
    ],
)
def test_expressions(consumer_group: ConsumerGroup, regex: str) -> None:
    """Right and wrong ones, in the dialect of RE2."""
    consumer_group.member("only").join(None, subscribed_topic_regex=regex)


def test_an_expression_that_is_refused_for_another_reason(consumer_group: ConsumerGroup) -> None:
    member = consumer_group.member("only")
    pair = member.join(None, subscribed_topic_regex="(?<=a)", deviation="D-015")
    assert pair.kafka["error_code"] == "invalid_regular_expression"

"""Regular expressions: what they match, and that they cannot cost too much."""

from __future__ import annotations

import pytest

from klamm.coordinator.consumer.expressions import (
    EXPRESSION_CHARS_MAX,
    check_expression,
    matching_topics,
)
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.tests.consumer.script import Script
from klamm.coordinator.tests.consumer.world import World
from klamm.wire.errors import ErrorCode

# As Kafka 4.3.1 describes them; it uses re2j.
REFUSED = {
    "(": "missing closing )",
    "(?<n>": "missing closing )",
    "a)": "regexp/syntax: internal error",
    "[a": "missing closing ]",
    "a++": "invalid nested repetition operator",
    "x{2}{3}": "invalid nested repetition operator",
    "a{1001}": "invalid repeat count",
    "a{2,1}": "invalid repeat count",
    "*a": "missing argument to repetition operator",
    "\\": "trailing backslash at end of expression",
    "(?P<n.>a)": "invalid named capture",
    "(?=a)": "invalid or unsupported Perl syntax",
    "[b-a]": "invalid character class range",
    "\\8": "invalid escape sequence",
    "\\pX": "invalid character class range",
}
TOO_LARGE = {
    "long": "a" * (EXPRESSION_CHARS_MAX + 1),
    "many repetitions": "|".join(f"topic{i}-[a-z]{{1,50}}" for i in range(100)),
    "large program": r"\pL{1,300}",
    "many groups": "(" * 300 + "a" + ")" * 300,
    "many optional parts": "a?" * (EXPRESSION_CHARS_MAX // 2),
}


@pytest.mark.parametrize(("expression", "description"), REFUSED.items())
def test_refused_in_kafkas_words(expression: str, description: str) -> None:
    with pytest.raises(CoordinatorError) as refusal:
        check_expression(expression)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refusal.value.message == (
        f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {description}."
    )


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large(name: str) -> None:
    with pytest.raises(CoordinatorError, match="pattern too large"):
        check_expression(TOO_LARGE[name])


def test_nested_repetitions_do_not_multiply() -> None:
    with pytest.raises(CoordinatorError, match="invalid repeat count"):
        check_expression("((((a{100}){100}){100}){100})")


@pytest.mark.parametrize(
    "expression",
    ["", "foo.*", "(?i)foo", "[a-z]{1,249}", "|".join(f"topic-{i}" for i in range(999))],
)
def test_accepted(expression: str) -> None:
    check_expression(expression)


def test_whole_names_match() -> None:
    topics = ["foo", "foo1", "bar", "barfoo"]
    assert matching_topics(["foo", "foo.*", "b|bar", "("], topics) == {
        "foo": {"foo"},
        "foo.*": {"foo", "foo1"},
        "b|bar": {"bar"},
        # Another broker may have stored what this one does not accept.
        "(": set(),
    }


def test_a_heartbeat_does_not_look_up_topics_itself() -> None:
    """With thousands of topics that is work for a thread."""
    world = World()
    for number in range(5_000):
        world.fakes.topics.add(f"foo{number}")
    script = Script(world)
    assert script.run("join a regex=foo.*")[-2:] == [
        "< a epoch=1 assignment=-",
        "= Stable epoch=1/1",
    ]
    assert len(world.background.waiting) == 1

"""Subscriptions by regular expression: which are accepted, and which topics they mean.

Expressions come from clients, so what they may cost is bounded. RE2 matches in linear time. How
long it compiles is bounded by its memory and, because groups in groups and chains of optional parts
take it quadratic time, by how many of these there are, counted repetitions included. Within the
bounds an expression compiles in less than 50 ms. Kafka has none, and an expression like
`((((a{100}){100}){100}){100})` takes all its memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import re2

from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode

EXPRESSION_CHARS_MAX = 16_384
EXPRESSION_MEMORY_BYTES_MAX = 256 * 1024
EXPRESSION_GROUPS_MAX = 200
EXPRESSION_OPTIONAL_PARTS_MAX = 1_000

TOO_LARGE = "pattern too large"
# Kafka shows what re2j says; RE2 says the same in other words.
DESCRIPTIONS = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "pattern too large - compile failed": TOO_LARGE,
}

_REPETITION = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResolvedExpression:
    """What an expression meant when it was last looked up.

    Args:
        version: of the topics then.
        timestamp: wall time of the look-up.
    """

    topics: frozenset[str]
    version: int
    timestamp: int


def check_expression(expression: str) -> None:
    """
    Raises:
        CoordinatorError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        _compile(expression)
    except re2.error as error:
        # What stands behind the colon is the part of the expression that is meant.
        what = error.args[0]
        what = (what.decode(errors="replace") if isinstance(what, bytes) else what).split(": ")[0]
        raise CoordinatorError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: "
            f"{DESCRIPTIONS.get(what, what)}.",
        ) from None


def matching_topics(expressions: Iterable[str], topics: Iterable[str]) -> dict[str, frozenset[str]]:
    """The topics whose whole name matches, by expression.

    This is work for a thread: with thousands of topics it takes too long for one step of the event
    loop. An expression that is not valid, because another broker stored it, matches nothing.
    """
    found: dict[str, frozenset[str]] = {}
    for expression in expressions:
        try:
            matches = _compile(expression).fullmatch
        except re2.error:
            found[expression] = frozenset()
        else:
            found[expression] = frozenset(topic for topic in topics if matches(topic))
    return found


def compile_expression(expression: str) -> Any:
    """An expression that is no subscription, within the same bounds.

    Raises:
        CoordinatorError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        return _compile(expression)
    except re2.error:
        raise CoordinatorError(ErrorCode.INVALID_REGULAR_EXPRESSION) from None


def _compile(expression: str) -> Any:
    counts = (max(int(low), int(high or 0)) for low, high in _REPETITION.findall(expression))
    # RE2 itself refuses a single count above the limit, and says so.
    optional_parts = expression.count("?") + sum(
        count for count in counts if count <= EXPRESSION_OPTIONAL_PARTS_MAX
    )
    if (
        len(expression) > EXPRESSION_CHARS_MAX
        or expression.count("(") > EXPRESSION_GROUPS_MAX
        or optional_parts > EXPRESSION_OPTIONAL_PARTS_MAX
    ):
        raise re2.error(TOO_LARGE)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = EXPRESSION_MEMORY_BYTES_MAX
    return re2.compile(expression, options)

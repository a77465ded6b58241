"""The checker is checked: it is content with a good history and complains about every damage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.groups.history import Assigned, Commit, History, Polled, violations

WHERE = ("t", 0)
STORED = {WHERE: ["a", "b", "c", "d"]}


def commit(at: float, outcome: str, offset: int) -> Commit:
    return Commit(at, "m", outcome, *WHERE, offset)


GOOD = History(
    [Assigned(0.0, "m", frozenset({WHERE})), Assigned(5.0, "n", frozenset({WHERE}))],
    [
        *(Polled(1.0 + offset / 10, "m", *WHERE, offset, "abc"[offset]) for offset in range(3)),
        *(Polled(6.0, "n", *WHERE, offset, "abcd"[offset]) for offset in (2, 3)),
    ],
    [
        *(commit(2.0, "committing", 2), commit(2.1, "committed", 2)),
        *(commit(3.0, "committing", 3), commit(7.0, "refused", 3)),
    ],
)


def test_a_good_history_has_no_violations() -> None:
    assert violations(GOOD, STORED, {WHERE: 2}) == []
    assert violations(GOOD, STORED, {WHERE: 3}) == []


@pytest.mark.parametrize(
    ("history", "stored", "committed", "complaint"),
    [
        (GOOD, {WHERE: ["a", "b", "c", "d", "e"]}, 2, "lost: "),
        (replace(GOOD, polled=GOOD.polled[1:]), STORED, 2, "lost behind a commit"),
        (GOOD, {WHERE: ["a", "x", "c", "d"]}, 2, "changed"),
        (GOOD, {WHERE: ["a", "b", "c"]}, 2, "changed"),
        (GOOD, STORED, 1, "lost commit"),
        (GOOD, STORED, -1, "lost commit"),
        (GOOD, STORED, 4, "phantom commit"),
        (
            replace(GOOD, polled=[*GOOD.polled, Polled(5.5, "n", *WHERE, 1, "b")]),
            *(STORED, 2, "forgotten"),
        ),
    ],
)
def test_damage_is_found(
    history: History, stored: dict[tuple[str, int], list[str]], committed: int, complaint: str
) -> None:
    found = violations(history, stored, {WHERE: committed})
    assert any(one.startswith(complaint) for one in found), found


def owned(at: float, member: str, generation: int, *, until: float | None = None) -> list[Assigned]:
    """A member has the partition, and lets it go again, or never does."""
    held = Assigned(at, member, frozenset({WHERE}), generation, at + 0.1)
    gone = [] if until is None else [Assigned(until, member, frozenset(), generation, until + 0.1)]
    return [held, *gone]


@pytest.mark.parametrize(
    ("assignments", "is_allowed"),
    [
        ([*owned(0.0, "m", 1), *owned(5.0, "n", 2)], True),
        ([*owned(0.0, "m", 1, until=4.0), *owned(5.0, "n", 1)], True),
        ([*owned(0.0, "m", -1), *owned(5.0, "n", -1)], True),
        ([*owned(0.0, "m", 1), *owned(5.0, "n", 1)], False),
        ([*owned(0.0, "m", 1, until=6.0), *owned(5.0, "n", 1)], False),
        # It is sure of having let go only at 5.1, when that poll has ended.
        ([*owned(0.0, "m", 1, until=5.0), *owned(5.05, "n", 1)], False),
        ([*owned(0.0, "m", 1), *owned(4.0, "m", 2), *owned(5.0, "n", 2)], False),
    ],
)
def test_a_partition_has_one_owner_in_a_generation(
    assignments: list[Assigned], is_allowed: bool
) -> None:
    found = violations(replace(GOOD, assignments=assignments), STORED, {WHERE: 3})
    has_two = any("two owners" in one for one in found)
    assert has_two != is_allowed


def test_a_commit_that_was_acknowledged_later_need_not_be_known() -> None:
    late = replace(GOOD, commits=[replace(one, at=one.at + 4) for one in GOOD.commits])
    again = replace(late, polled=[*GOOD.polled, Polled(5.5, "n", *WHERE, 0, "a")])
    assert violations(again, STORED, {WHERE: 3}) == []

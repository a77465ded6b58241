"""The checker is checked: it is content with a good history and complains about every damage."""

from __future__ import annotations

import pytest

from compat_tests.clients.history import Event, violations

GOOD = [
    *(Event("invoke", f"v{number}") for number in range(6)),
    *(Event("ok", f"v{number}", number) for number in range(5)),
    Event("unknown", "v5"),
    *(Event("poll", f"v{number}", number) for number in range(5)),
]
STORED = [(number, f"v{number}") for number in range(5)]


def test_a_good_history_has_no_violations() -> None:
    assert violations(GOOD, STORED, idempotent=True) == []


def test_what_ended_unknown_may_be_there() -> None:
    assert violations(GOOD, [*STORED, (5, "v5")], idempotent=True) == []


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        (STORED[:-1], "lost"),
        ([(0, "v1"), (1, "v0"), *STORED[2:]], "moved"),
        ([(0, "v0"), (1, "v1"), (2, "other"), *STORED[3:]], "changed"),
        ([*STORED, (5, "stranger")], "phantom"),
        (STORED[1:], "gap"),
        ([*STORED, (5, "v1")], "doubled"),
        ([(0, "v1"), (1, "v0"), *STORED[2:]], "out of order"),
    ],
)
def test_damage_in_the_log_is_found(stored: list[tuple[int, str]], complaint: str) -> None:
    found = violations(GOOD, stored, idempotent=True)
    assert any(one.startswith(complaint) for one in found), found


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (Event("ok", "v6", 6), "lost"),
        (Event("ok", "v5", 4), "moved"),
        (Event("poll", "v4", 4), "gap"),
        (Event("poll", "v1", 5), "changed"),
        (Event("poll", "stranger", 5), "phantom"),
    ],
)
def test_damage_in_the_events_is_found(event: Event, complaint: str) -> None:
    found = violations([*GOOD, event], [*STORED, (5, "v5")], idempotent=True)
    assert any(one.startswith(complaint) for one in found), found


def test_without_idempotence_a_record_may_be_there_twice() -> None:
    assert violations(GOOD, [*STORED, (5, "v1")], idempotent=False) == []

"""The checker is content with good histories; and what is none is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from compat_tests.history.__main__ import main
from compat_tests.history.events import BadHistoryError, Event, read_history, read_line
from compat_tests.history.feed import FEEDS, fed, unfed
from compat_tests.history.model import GROUP, TOPIC, good_history
from compat_tests.history.reads import TOMBSTONE
from compat_tests.history.recorder import History
from compat_tests.history.rules import RULES, violations
from compat_tests.history.test_mutations import (
    double_a_record,
    drop,
    indexes,
    lose_the_last_of_a_key,
)


@pytest.mark.parametrize("seed", range(200))
def test_good_histories(seed: int) -> None:
    events = good_history(seed)
    assert violations(events) == []
    assert read_history(event.line() for event in events) == events


# --- what is no fault ----------------------------------------------------------------------------


def test_without_idempotence_a_record_may_be_there_twice() -> None:
    events = double_a_record(good_history(0), random.Random(0))
    plain = [replace(event, idempotent=False) for event in events]
    assert not [one for one in violations(plain) if one.startswith(("I3", "I4 ", "I18"))]


def test_what_lies_below_the_log_start_may_be_gone() -> None:
    events = good_history(1)
    first = indexes(events, "read")[0]
    dropped = drop(events, first)
    assert any("is not in the log" in one for one in violations(dropped))
    told = Event("ok", "watermarks", topic=TOPIC, leader_epoch=99, log_start=1)
    assert violations([*dropped, told]) == []


def test_a_consumer_may_begin_again_with_a_new_assignment() -> None:
    events = good_history(2)
    polls = [replace(events[i], assignment="again") for i in indexes(events, "poll")[:3]]
    assert violations([*events, *polls]) == []


def test_a_null_may_be_gone_after_compaction() -> None:
    events = lose_the_last_of_a_key(good_history(3), random.Random(3))
    (lost,) = [one for one in violations(events) if one.startswith("I13")]
    value = lost.split(", ")[1].split("'")[1]
    nulls = [
        replace(event, value=TOMBSTONE + value) if event.value == value else event
        for event in events
    ]
    assert violations(nulls) == []


def test_a_later_attempt_to_commit_may_have_succeeded() -> None:
    place = {"topic": TOPIC, "group": GROUP}

    def told(offset: int) -> list[str]:
        history = [
            Event("invoke", "commit", value="a", offset=3, **place),  # type: ignore[arg-type]
            Event("ok", "commit", value="a", offset=3, **place),  # type: ignore[arg-type]
            Event("invoke", "commit", value="b", offset=1, **place),  # type: ignore[arg-type]
            Event("unknown", "commit", value="b", offset=1, **place),  # type: ignore[arg-type]
            Event("ok", "committed", offset=offset, **place),  # type: ignore[arg-type]
        ]
        return violations(history)

    assert told(3) == told(1) == []
    assert told(2) != []
    assert told(-1) != []


# --- what a history gives to the rules -----------------------------------------------------------


def test_every_rule_has_its_feed() -> None:
    assert list(FEEDS) == [name for name, _ in RULES]


@pytest.mark.parametrize("rule", FEEDS)
def test_good_histories_feed_every_rule(rule: str) -> None:
    assert any(unfed(good_history(seed), [rule]) == [] for seed in range(5))
    assert unfed([], [rule]) == [rule]


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("I1 lost", "end"),
        ("I7 commit", "committed"),
        ("I7 two owners", "assign"),
        ("I8 watermark", "watermarks"),
        ("I13 compaction", "topic"),
        ("I15 replay", "state"),
        ("I16 recovery", "check"),
        ("I17 liveness", "fault"),
    ],
)
def test_without_its_events_a_rule_has_nothing_to_judge(rule: str, action: str) -> None:
    events = [event for event in good_history(0) if event.action != action]
    assert unfed(events, [rule]) == [rule]


def test_marks_that_stand_still_feed_nothing() -> None:
    still = Event("ok", "watermarks", topic=TOPIC, log_start=3, last_stable=4, high_watermark=5)
    moved = replace(still, log_start=4, last_stable=5, high_watermark=6)
    assert fed([still, still])["I8 watermark"] == 0
    assert fed([still, replace(moved, log_start=3)])["I8 watermark"] == 0
    assert fed([still, replace(moved, leader_epoch=7)])["I8 watermark"] == 0
    assert fed([still, moved])["I8 watermark"] == 1


def test_a_log_start_never_goes_back_also_in_a_later_epoch() -> None:
    told = Event("ok", "watermarks", topic=TOPIC, leader_epoch=1, log_start=3)
    events = [told, replace(told, leader_epoch=2, log_start=2)]
    assert [one.split(":")[0] for one in violations(events)] == ["I8 watermark"]


# --- histories that are none ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "events",
    [
        [Event("invoke", "send", topic=TOPIC, value="v")] * 2,
        [Event("ok", "send", topic=TOPIC, value="v")],
        [
            Event("invoke", "send", topic=TOPIC, value="v"),
            Event("ok", "send", topic=TOPIC, value="v", offset=1),
            Event("ok", "send", topic=TOPIC, value="v", offset=2),
        ],
    ],
)
def test_events_that_can_not_follow_each_other(events: list[Event]) -> None:
    assert any(one.startswith("history: ") for one in violations(events))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{",
        '{"type": "ok"}',
        '{"type": "ok", "action": "dance"}',
        '{"type": "ok", "action": "poll", "offset": "3"}',
        '{"type": "ok", "action": "poll", "colour": "red"}',
    ],
)
def test_lines_that_are_no_events(line: str) -> None:
    with pytest.raises(BadHistoryError):
        read_line(line)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history"
    history = History(idempotent=True)
    history.add_start(0)
    history.add("invoke", "v")
    history.add_fault("kill")
    history.add_fault("kill", is_over=True)
    history.add("ok", "v", 0)
    history.add("poll", "v", 0, leader_epoch=4)
    history.add_check([])
    history.add_log([(0, "v")])
    history.save(path)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "0 violations in 9 events\n"
    history.add("invoke", "w")
    history.add("ok", "w", 1)
    history.save(path)
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "I1 lost: topic-0: 'w' was acknowledged at 1 and is not in the log",
        "1 violations in 11 events",
    ]
    path.write_text("{}\n")
    assert main([str(path)]) == 2
    assert main([]) == 2
    assert "line 1: not an event" in capsys.readouterr().err

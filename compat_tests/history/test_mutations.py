"""Good histories with one damage each: the checker must complain, by the rule that is broken."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from compat_tests.history.broker import LIVENESS_S
from compat_tests.history.events import Event
from compat_tests.history.model import COMPACTED, TOPIC, good_history
from compat_tests.history.rules import RULES, violations

SEEDS = range(40)

Mutation = Callable[[list[Event], random.Random], list[Event]]


def indexes(
    events: list[Event], action: str, event_type: str = "ok", topic: str = TOPIC
) -> list[int]:
    return [
        index
        for index, event in enumerate(events)
        if (event.action, event.type) == (action, event_type) and event.topic in (topic, "")
    ]


def change(events: list[Event], index: int, **fields: object) -> list[Event]:
    changed = list(events)
    changed[index] = replace(events[index], **fields)  # type: ignore[arg-type]
    return changed


def drop(events: list[Event], index: int) -> list[Event]:
    return events[:index] + events[index + 1 :]


def swap(events: list[Event], one: int, other: int) -> list[Event]:
    changed = list(events)
    changed[one], changed[other] = events[other], events[one]
    return changed


def acknowledged(events: list[Event]) -> set[str | None]:
    return {event.value for event in events if (event.action, event.type) == ("send", "ok")}


def lose_a_record(events: list[Event], chance: random.Random) -> list[Event]:
    kept = acknowledged(events)
    return drop(
        events, chance.choice([i for i in indexes(events, "read") if events[i].value in kept])
    )


def lose_the_end(events: list[Event], chance: random.Random) -> list[Event]:
    """The log ends before something that was acknowledged."""
    kept = acknowledged(events)
    reads = indexes(events, "read")
    last = max(i for i in reads if events[i].value in kept)
    end = indexes(events, "end")[0]
    shorter = change(events, end, offset=events[last].offset)
    return [event for i, event in enumerate(shorter) if i not in reads or i < last]


def double_a_record(events: list[Event], chance: random.Random) -> list[Event]:
    reads = indexes(events, "read")
    end = indexes(events, "end")[0]
    twin = replace(events[chance.choice(reads[:-1])], offset=events[end].offset, sequence=-1)
    longer = change(events, end, offset=events[end].offset + 1)
    return [*longer[:end], twin, *longer[end:]]


def swap_two_records(events: list[Event], chance: random.Random) -> list[Event]:
    one, other = chance.sample(indexes(events, "read"), 2)
    first, second = events[one], events[other]
    changed = change(events, one, value=second.value)
    return change(changed, other, value=first.value)


def flip_a_value(events: list[Event], chance: random.Random) -> list[Event]:
    return change(events, chance.choice(indexes(events, "read")), value="flipped")


def poll_another_value(events: list[Event], chance: random.Random) -> list[Event]:
    one, other = chance.sample(indexes(events, "poll"), 2)
    return change(events, one, value=events[other].value)


def acknowledge_elsewhere(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(indexes(events, "send"))
    return change(events, index, offset=events[index].offset + chance.choice((1, 7)))


def refuse_what_is_there(events: list[Event], chance: random.Random) -> list[Event]:
    return change(events, chance.choice(indexes(events, "send")), type="fail", offset=-1)


def forget_a_send(events: list[Event], chance: random.Random) -> list[Event]:
    kept = acknowledged(events)
    sends = [i for i in indexes(events, "send", "invoke") if events[i].value in kept]
    value = events[chance.choice(sends)].value
    return [event for event in events if event.action != "send" or event.value != value]


def sort_sends_anew(events: list[Event], chance: random.Random) -> list[Event]:
    """Two acknowledged sends of one producer, in the other order."""
    kept = acknowledged(events)
    sends = [i for i in indexes(events, "send", "invoke") if events[i].value in kept]
    process = events[sends[0]].process
    one, other = [i for i in sends if events[i].process == process][:2]
    first, second = events[one].value, events[other].value
    changed = change(change(events, one, value=second), other, value=first)
    ends = {events[i].value: i for i in indexes(events, "send")}
    assert first is not None
    return swap(changed, ends[first], ends[second])


def repeat_a_sequence(events: list[Event], chance: random.Random) -> list[Event]:
    reads = [i for i in indexes(events, "read") if events[i].producer_id == 0]
    one, other = sorted(chance.sample(reads, 2))
    return change(events, other, sequence=events[one].sequence)


def drop_a_poll(events: list[Event], chance: random.Random) -> list[Event]:
    return drop(events, chance.choice(indexes(events, "poll")[:-1]))


def repeat_a_poll(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(indexes(events, "poll"))
    return [*events[: index + 1], events[index], *events[index + 1 :]]


def swap_two_polls(events: list[Event], chance: random.Random) -> list[Event]:
    return swap(events, *chance.sample(indexes(events, "poll"), 2))


def undo_a_commit(events: list[Event], chance: random.Random) -> list[Event]:
    """The group is told of an offset that nobody has committed."""
    return change(events, chance.choice(indexes(events, "committed")), offset=999)


def add_an_owner(events: list[Event], chance: random.Random) -> list[Event]:
    index = indexes(events, "assign")[0]
    return [
        *events[: index + 1],
        replace(events[index], process="d", offset=-1),
        *events[index + 1 :],
    ]


def lower_a_watermark(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(indexes(events, "watermarks"))
    name = chance.choice(("log_start", "last_stable", "high_watermark"))
    mark = getattr(events[index], name)
    lower = replace(events[index], log_start=0, last_stable=-1, high_watermark=-1, log_end=-1)
    higher = change(
        events, index, **{name: mark + 2, "log_end": mark + 2, "high_watermark": mark + 2}
    )
    return [*higher[: index + 1], replace(lower, **{name: mark}), *higher[index + 1 :]]


def exchange_watermarks(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(indexes(events, "watermarks"))
    return change(events, index, high_watermark=events[index].log_end + 1)


def lose_the_last_of_a_key(events: list[Event], chance: random.Random) -> list[Event]:
    return drop(events, chance.choice(indexes(events, "read", topic=COMPACTED)))


def change_an_epoch(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(indexes(events, "read"))
    return change(events, index, leader_epoch=events[index].leader_epoch + 1)


def change_a_state(events: list[Event], chance: random.Random) -> list[Event]:
    states = [i for i in indexes(events, "state") if events[i].phase == "replayed"]
    return change(events, chance.choice(states), value="other")


def fail_a_check(events: list[Event], chance: random.Random) -> list[Event]:
    return change(events, chance.choice(indexes(events, "check")), type="fail", value="byte 7")


def never_end_a_send(events: list[Event], chance: random.Random) -> list[Event]:
    return drop(events, chance.choice(indexes(events, "send", "unknown")))


def take_too_long(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(indexes(events, "fault"))
    return [
        replace(event, time=event.time + LIVENESS_S * (i > index)) for i, event in enumerate(events)
    ]


def double_an_unknown(events: list[Event], chance: random.Random) -> list[Event]:
    """A send that was given up stands in the log twice."""
    index = chance.choice(indexes(events, "send", "unknown"))
    end = indexes(events, "end")[0]
    offset = events[end].offset
    twins = [
        Event("ok", "read", topic=TOPIC, offset=place, value=events[index].value)
        for place in (offset, offset + 1)
    ]
    longer = change(events, end, offset=offset + 2)
    return [*longer[:end], *twins, *longer[end:]]


MUTATIONS: list[tuple[Mutation, str]] = [
    (lose_a_record, "I1"),
    (lose_the_end, "I1"),
    (double_a_record, "I3 I18"),
    (swap_two_records, "I2"),
    (flip_a_value, "I5"),
    (poll_another_value, "I2"),
    (acknowledge_elsewhere, "I2 I3"),
    (refuse_what_is_there, "I5"),
    (forget_a_send, "I5"),
    (sort_sends_anew, "I4"),
    (repeat_a_sequence, "I4"),
    (drop_a_poll, "I6"),
    (repeat_a_poll, "I6"),
    (swap_two_polls, "I6"),
    (undo_a_commit, "I7"),
    (add_an_owner, "I7"),
    (lower_a_watermark, "I8"),
    (exchange_watermarks, "I8"),
    (lose_the_last_of_a_key, "I13"),
    (change_an_epoch, "I14"),
    (change_a_state, "I15"),
    (fail_a_check, "I16"),
    (never_end_a_send, "I17"),
    (take_too_long, "I17"),
    (double_an_unknown, "I18"),
]


@pytest.mark.parametrize(("mutation", "rules"), MUTATIONS)
def test_mutated_histories(mutation: Mutation, rules: str) -> None:
    for seed in SEEDS:
        events = mutation(good_history(seed), random.Random(seed))
        found = {one.split()[0] for one in violations(events)}
        assert found & set(rules.split()), (seed, found)


def test_every_rule_is_broken_by_a_mutation() -> None:
    broken = {rule for _, rules in MUTATIONS for rule in rules.split()}
    assert broken == {name.split()[0] for name, _ in RULES}

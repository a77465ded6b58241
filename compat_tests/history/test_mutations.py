"""Good histories with one damage each: the checker must complain, by the rule that is broken."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from compat_tests.history.broker import LIVENESS_S
from compat_tests.history.events import Event
from compat_tests.history.model import COMPACTED, TOPIC, good_history
from compat_tests.history.model_transactions import BANK, COPY
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


def ends(events: list[Event], outcome: str, name: str = "commit") -> set[str]:
    return {
        event.transaction
        for event in events
        if (event.action, event.type, event.name) == ("transaction", outcome, name)
    }


def values_of(events: list[Event], topic: str, transactions: set[str]) -> set[str | None]:
    return {
        event.value
        for event in events
        if event.action == "send" and event.topic == topic and event.transaction in transactions
    }


def committed_reads(
    events: list[Event], topic: str, action: str = "read", isolation: str = "committed"
) -> list[int]:
    return [i for i in indexes(events, action, topic=topic) if events[i].isolation == isolation]


def abort_what_is_seen(events: list[Event], chance: random.Random) -> list[Event]:
    """The producer was told that it is aborted."""
    name = chance.choice(sorted(ends(events, "ok")))
    return [
        replace(event, name="abort")
        if event.action == "transaction" and event.transaction == name
        else event
        for event in events
    ]


def see_what_is_aborted(events: list[Event], chance: random.Random) -> list[Event]:
    aborted = values_of(events, BANK, ends(events, "ok", "abort"))
    end = indexes(events, "end", topic=BANK)[-1]
    index = chance.choice(
        [i for i in committed_reads(events, BANK, isolation="") if events[i].value in aborted]
    )
    return [*events[:end], replace(events[index], isolation="committed"), *events[end:]]


def see_what_is_open(events: list[Event], chance: random.Random) -> list[Event]:
    index = chance.choice(committed_reads(events, BANK, "poll"))
    poll = events[index]
    sent = next(i for i, e in enumerate(events) if e.action == "send" and e.value == poll.value)
    return [*events[: sent + 1], poll, *drop(events, index)[sent + 1 :]]


def see_above_the_stable_offset(events: list[Event], chance: random.Random) -> list[Event]:
    marks = [
        i
        for i in indexes(events, "watermarks", topic=BANK)
        if any(events[p].partition == events[i].partition for p in polls_before(events, i))
    ]
    index = chance.choice(marks)
    furthest = max(
        events[p].offset
        for p in polls_before(events, index)
        if events[p].partition == events[index].partition
    )
    return change(events, index, last_stable=furthest)


def polls_before(events: list[Event], index: int) -> list[int]:
    return [p for p in committed_reads(events, BANK, "poll") if p < index]


def pass_over_a_committed_record(events: list[Event], chance: random.Random) -> list[Event]:
    sure = values_of(events, BANK, ends(events, "ok"))
    polls = [i for i in committed_reads(events, BANK, "poll") if events[i].value in sure]
    last = {events[i].partition: i for i in committed_reads(events, BANK, "poll")}
    first = {events[i].partition: i for i in reversed(committed_reads(events, BANK, "poll"))}
    inner = [i for i in polls if i not in (*last.values(), *first.values())]
    return drop(events, chance.choice(inner))


def lose_a_part(events: list[Event], chance: random.Random) -> list[Event]:
    sure = values_of(events, BANK, ends(events, "ok"))
    reads = [i for i in committed_reads(events, BANK) if events[i].value in sure]
    return drop(events, chance.choice(reads))


def tear_what_nobody_knows(events: list[Event], chance: random.Random) -> list[Event]:
    unknown = values_of(events, BANK, ends(events, "unknown"))
    reads = [i for i in committed_reads(events, BANK) if events[i].value in unknown]
    return drop(events, chance.choice(reads))


def committed_sends(events: list[Event], topic: str) -> list[int]:
    committed = ends(events, "ok")
    sends = indexes(events, "send", "invoke", topic=topic)
    return [i for i in sends if events[i].transaction in committed]


def copy_twice(events: list[Event], chance: random.Random) -> list[Event]:
    """Two transactions have copied the same record."""
    one, other = chance.sample(committed_sends(events, COPY), 2)
    return change(events, other, origin=events[one].origin)


def copy_in_another_order(events: list[Event], chance: random.Random) -> list[Event]:
    one, other = chance.sample(committed_sends(events, COPY), 2)
    changed = change(events, one, origin=events[other].origin)
    return change(changed, other, origin=events[one].origin)


def steal_money(events: list[Event], chance: random.Random) -> list[Event]:
    """The last that was written of an account is wrong."""
    there = {events[i].value for i in committed_reads(events, BANK)}
    newest = {
        events[i].key: i
        for i in indexes(events, "send", "invoke", topic=BANK)
        if events[i].value in there
    }
    index = chance.choice(sorted(newest.values()))
    return change(events, index, amount=events[index].amount - 1)


def write_as_a_zombie(events: list[Event], chance: random.Random) -> list[Event]:
    """What a process sent before it was replaced stands behind what the next one has sent."""
    newest: dict[int, int] = {}
    candidates = []
    for i in indexes(events, "send", "invoke", topic=BANK):
        if newest.get(events[i].partition) == events[i].generation > 0:
            candidates.append(i)
        newest[events[i].partition] = events[i].generation
    index = chance.choice(candidates)
    return change(events, index, generation=events[index].generation - 1)


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
    (abort_what_is_seen, "I9"),
    (see_what_is_aborted, "I9"),
    (see_what_is_open, "I9"),
    (see_above_the_stable_offset, "I9"),
    (pass_over_a_committed_record, "I9"),
    (lose_a_part, "I9"),
    (tear_what_nobody_knows, "I9"),
    (copy_twice, "I10"),
    (copy_in_another_order, "I10"),
    (steal_money, "I11"),
    (write_as_a_zombie, "I12"),
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

"""The fakes behave like the world that they stand for."""

from __future__ import annotations

import pytest

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.tests.fakes import FakeJournal, FakeTimers, FakeTopics
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.stored.classic_group import GroupMetadataKey, GroupMetadataValue


def test_the_journal_replays_what_it_has_written() -> None:
    replayed: list[CoordinatorRecord] = []
    journal = FakeJournal(replayed.append)
    key = GroupMetadataKey(group="g")
    record = CoordinatorRecord(key, GroupMetadataValue(generation=1, leader="a"), 3)
    journal.append([record, CoordinatorRecord(key, None)])
    assert replayed == [record, CoordinatorRecord(key, None)]
    assert replayed == journal.records
    assert replayed[0].value is not record.value


def test_the_journal_refuses_whole_appends() -> None:
    replayed: list[CoordinatorRecord] = []
    journal = FakeJournal(replayed.append)
    record = CoordinatorRecord(GroupMetadataKey(group="g"), None)
    journal.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, appends=2, after=1)
    journal.append([record])
    for _ in range(2):
        with pytest.raises(CoordinatorError) as refusal:
            journal.append([record, record])
        assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    journal.append([record])
    assert replayed == [record, record]
    assert journal.refused == 2


def test_timers_expire_in_order_and_once() -> None:
    timers = FakeTimers()
    expired: list[str] = []

    def expire(name: str) -> None:
        expired.append(f"{name} at {timers.now_ms}")
        if name == "b":
            timers.schedule("c", 5, lambda: expire("c"))

    timers.schedule("a", 20, lambda: expire("a"))
    timers.schedule("b", 10, lambda: expire("b"))
    timers.schedule("x", 10, lambda: expire("x"))
    timers.schedule("a", 30, lambda: expire("a"))
    timers.cancel("x")
    timers.cancel("unknown")
    timers.advance(9)
    assert expired == []
    assert timers.remaining_ms() == {"a": 21, "b": 1}
    timers.advance(100)
    assert expired == ["b at 10", "c at 15", "a at 30"]
    assert timers.now_ms == 109


def test_timers_that_never_end_are_found() -> None:
    timers = FakeTimers()

    def again() -> None:
        timers.schedule("a", 0, again)

    again()
    with pytest.raises(AssertionError, match="timers expired"):
        timers.advance()


def test_topics_keep_their_ids() -> None:
    topics = FakeTopics()
    first = topics.add("t", 1)
    version = topics.version
    grown = topics.add("t", racks=[["r1"], ["r1", "r2"]])
    assert topics.version != version
    assert grown.topic_id == first.topic_id
    assert grown.partition_count == 2
    assert topics.find_by_id(grown.topic_id) is topics.find("t") is grown
    topics.remove("t")
    assert topics.find("t") is None
    assert topics.find_by_id(grown.topic_id) is None
    assert list(topics.names()) == []
    assert topics.add("t").topic_id != first.topic_id

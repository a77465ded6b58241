"""The hashes that decide what is stored, and where, against those of Apache Kafka 4.3.1.

kafka_hashes.jsonl holds what Kafka's own functions answer; `python -m compat_tests.oracle` writes
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import given

from klamm.coordinator.java_strings import hash_code, sort_key
from klamm.coordinator.metadata_hash import group_hash, topic_hash
from klamm.coordinator.partitioning import partition_for
from klamm.coordinator.ports import TopicDescription

LINES = (Path(__file__).parent / "kafka_hashes.jsonl").read_text(encoding="utf-8").splitlines()


def _topic_hash(name: str, topic_id: str, racks: list[list[str]]) -> int:
    return topic_hash(TopicDescription(name, UUID(topic_id), tuple(map(frozenset, racks))))


FUNCTIONS: dict[str, Callable[..., int]] = {
    "partition_for": partition_for,
    "topic_hash": _topic_hash,
    "group_hash": group_hash,
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_same_answers(name: str) -> None:
    questions = [line for line in map(json.loads, LINES) if line.pop("ask") == name]
    assert questions
    for arguments in questions:
        answer = arguments.pop("answer")
        assert FUNCTIONS[name](**arguments) == answer, arguments


def test_hash_codes() -> None:
    """Known ones: the last is the smallest number of 32 bits, for which the partition is 0."""
    known: dict[str, Any] = {"": 0, "a": 97, "ab": 3105, "polygenelubricants": -(2**31)}
    assert {text: hash_code(text) for text in known} == known
    assert partition_for("polygenelubricants", 7) == 0


@given(st.text(), st.integers(1, 200))
def test_partitions_exist(key: str, partition_count: int) -> None:
    assert 0 <= partition_for(key, partition_count) < partition_count


def test_strings_are_ordered_by_code_units() -> None:
    assert sorted(["\U0001f600", "\uff5e", "b", "a"], key=sort_key) == [
        *("a", "b", "\U0001f600", "\uff5e")
    ]


def test_racks_and_growth_change_the_hash() -> None:
    topic = TopicDescription("t", UUID(int=1), (frozenset({"r1"}),))
    grown = TopicDescription("t", UUID(int=1), (frozenset({"r1"}), frozenset()))
    moved = TopicDescription("t", UUID(int=1), (frozenset({"r2"}),))
    again = TopicDescription("t", UUID(int=2), (frozenset({"r1"}),))
    assert len({topic_hash(each) for each in (topic, grown, moved, again)}) == 4

"""The assignors against those of Apache Kafka 4.3.1.

kafka_assignments.jsonl holds what these made of random groups that change step by step, each step
from the target of the last one. `python -m compat_tests.oracle` writes it; its members are in
order, because Kafka takes them in the order of a hash table and klamm in that of their ids.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from klamm.coordinator.assignor import ASSIGNORS, MemberSpec
from klamm.coordinator.ports import TopicDescription
from klamm.coordinator.tests.assignor.support import Target, owners

LINES = (Path(__file__).parent / "kafka_assignments.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("number", range(len(LINES)))
def test_same_owners(number: int) -> None:
    scenario = json.loads(LINES[number])
    topic_ids = [UUID(text) for text in scenario["topic_ids"]]
    target: Target = {}
    for step, expected in zip(scenario["steps"], scenario["owners"], strict=True):
        topics = {
            topic_id: TopicDescription(f"t{index}", topic_id, (frozenset(),) * count)
            for index, (topic_id, count) in enumerate(
                zip(topic_ids, step["partition_counts"], strict=True)
            )
            if count
        }
        members = {
            member_id: MemberSpec(
                frozenset(topic_ids[topic] for topic in subscribed),
                None,
                instance_id,
                target.get(member_id, {}),
            )
            for member_id, instance_id, subscribed in step["members"]
        }
        target = ASSIGNORS[step["assignor"]].assign(members, topics)
        assert owners(target) == _owners(expected, topic_ids, step["members"])


def _owners(
    expected: list[list[int]], topic_ids: list[UUID], members: list[Any]
) -> dict[tuple[UUID, int], str]:
    return {
        (topic_id, partition): members[owner][0]
        for topic_id, owners_of_topic in zip(topic_ids, expected, strict=True)
        for partition, owner in enumerate(owners_of_topic)
        if owner != -1
    }

"""Offsets against a dictionary: any order of commits, deletions, sweeps, refusals and restarts.

Goal: what is fetched is always the last commit that was not refused, in the order of commits; what
was refused left no trace; and a restart, which has nothing but the log, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.groups import Coordinated, codes, drain
from klamm.wire.errors import ErrorCode

RETENTION_MS = 1000
PARTITIONS = 3
TOPICS = ("t", "u")

group_ids = st.sampled_from(["a", "b", "c"])
topics = st.sampled_from(TOPICS)
partitions = st.integers(0, PARTITIONS - 1)
commits = st.dictionaries(
    topics, st.dictionaries(partitions, st.integers(0, 9), min_size=1), min_size=1
)

Key = tuple[str, str, int]


class OffsetsAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = Coordinated(GroupSettings(offsets_retention_ms=RETENTION_MS))
        for topic in TOPICS:
            self.world.topics.add(topic, PARTITIONS)
        # Offset and time of the commit.
        self.model: dict[Key, tuple[int, int]] = {}

    @rule(group_id=group_ids, offsets=commits, is_refused=st.booleans())
    def commit(self, group_id: str, offsets: dict[str, dict[int, int]], is_refused: bool) -> None:
        if is_refused:
            self.world.journal.refuse(ErrorCode.NOT_COORDINATOR)
        response = self.world.commit(group_id, offsets)
        expected = ErrorCode.NOT_COORDINATOR if is_refused else ErrorCode.NONE
        assert codes(response) == {
            topic: dict.fromkeys(indexes, expected) for topic, indexes in offsets.items()
        }
        if not is_refused:
            for topic, indexes in offsets.items():
                for index, offset in indexes.items():
                    self.model[group_id, topic, index] = (offset, self.world.timers.now_ms)

    @rule(group_id=group_ids, topic=topics, index=partitions)
    def delete_offset(self, group_id: str, topic: str, index: int) -> None:
        if group_id in self.world.groups:
            self.world.delete_offsets(group_id, {topic: [index]})
        self.model.pop((group_id, topic, index), None)

    @rule(group_id=group_ids)
    def delete_group(self, group_id: str) -> None:
        if group_id in self.world.groups:
            drain(self.world.coordinator.delete(group_id))
        self._forget(lambda key: key[0] == group_id)

    @rule(topic=topics)
    def recreate_topic(self, topic: str) -> None:
        self.world.topics.remove(topic)
        self.world.topics.add(topic, PARTITIONS)
        drain(self.world.coordinator.remove_orphans())
        self._forget(lambda key: key[1] == topic)

    @rule(passed_ms=st.integers(0, 700))
    def expire(self, passed_ms: int) -> None:
        self.world.timers.advance(passed_ms)
        drain(self.world.coordinator.remove_expired(self.world.shard.now_ms()))
        now_ms = self.world.timers.now_ms
        self._forget(lambda key: now_ms - self.model[key][1] >= RETENTION_MS)
        assert set(self.world.groups) == {key[0] for key in self.model}

    @rule()
    def restart(self) -> None:
        self.world.restart()

    def _forget(self, is_gone: Callable[[Key], bool]) -> None:
        for key in [key for key in self.model if is_gone(key)]:
            del self.model[key]

    @invariant()
    def what_is_fetched_is_what_was_committed_last(self) -> None:
        fetched = {
            (group_id, topic, index): offset
            for group_id in self.world.groups
            for topic, indexes in self.world.offsets(group_id).items()
            for index, offset in indexes.items()
        }
        assert fetched == {key: offset for key, (offset, _) in self.model.items()}


TestOffsetsAgainstModel = OffsetsAgainstModel.TestCase
TestOffsetsAgainstModel.settings = settings(max_examples=100, stateful_step_count=30)

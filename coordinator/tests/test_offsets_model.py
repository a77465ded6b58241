"""Offsets against a list: any order of commits, plain and in transactions, of ends of transactions,
deletions, sweeps, refusals and restarts.

Goal: what is fetched is always the last commit that was neither refused nor aborted and is not open
any more, in the order of commits; what was refused left no trace; a partition is unstable exactly
while a transaction with a commit for it is open; and a restart, which has nothing but the log,
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.groups import Coordinated, codes, drain
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import NO_PRODUCER_ID

RETENTION_MS = 1000
PARTITIONS = 3
TOPICS = ("t", "u")

group_ids = st.sampled_from(["a", "b", "c"])
topics = st.sampled_from(TOPICS)
partitions = st.integers(0, PARTITIONS - 1)
commits = st.dictionaries(
    topics, st.dictionaries(partitions, st.integers(0, 9), min_size=1), min_size=1
)

producer_ids = st.sampled_from([NO_PRODUCER_ID, 1, 2])

Key = tuple[str, str, int]


@dataclass
class Commit:
    """One commit; open_by is the producer whose transaction has not ended yet."""

    key: Key
    offset: int
    time_ms: int
    open_by: int


class OffsetsAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = Coordinated(GroupSettings(offsets_retention_ms=RETENTION_MS))
        for topic in TOPICS:
            self.world.topics.add(topic, PARTITIONS)
        # In the order of the log, without what is aborted or deleted.
        self.model: list[Commit] = []

    @rule(
        group_id=group_ids,
        offsets=commits,
        producer_id=producer_ids,
        is_refused=st.booleans(),
    )
    def commit(
        self,
        group_id: str,
        offsets: dict[str, dict[int, int]],
        producer_id: int,
        is_refused: bool,
    ) -> None:
        if is_refused:
            self.world.journal.refuse(ErrorCode.NOT_COORDINATOR)
        response = self.world.commit(group_id, offsets, producer_id=producer_id)
        expected = ErrorCode.NOT_COORDINATOR if is_refused else ErrorCode.NONE
        assert codes(response) == {
            topic: dict.fromkeys(indexes, expected) for topic, indexes in offsets.items()
        }
        if not is_refused:
            now_ms = self.world.timers.now_ms
            self.model += [
                Commit((group_id, topic, index), offset, now_ms, producer_id)
                for topic, indexes in offsets.items()
                for index, offset in indexes.items()
            ]

    @rule(producer_id=producer_ids.filter(lambda number: number >= 0), is_commit=st.booleans())
    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        self.world.journal.end_transaction(producer_id, is_commit=is_commit)
        if not is_commit:
            self._forget(lambda commit: commit.open_by == producer_id)
        for commit in self.model:
            if commit.open_by == producer_id:
                commit.open_by = NO_PRODUCER_ID

    @rule(group_id=group_ids, topic=topics, index=partitions)
    def delete_offset(self, group_id: str, topic: str, index: int) -> None:
        if group_id in self.world.groups:
            self.world.delete_offsets(group_id, {topic: [index]})
        self._forget(lambda commit: commit.key == (group_id, topic, index))

    @rule(group_id=group_ids)
    def delete_group(self, group_id: str) -> None:
        if group_id in self.world.groups:
            drain(self.world.coordinator.delete(group_id))
        self._forget(lambda commit: commit.key[0] == group_id)

    @rule(topic=topics)
    def recreate_topic(self, topic: str) -> None:
        self.world.topics.remove(topic)
        self.world.topics.add(topic, PARTITIONS)
        drain(self.world.coordinator.remove_orphans())
        self._forget(lambda commit: commit.key[1] == topic)

    @rule(passed_ms=st.integers(0, 700))
    def expire(self, passed_ms: int) -> None:
        self.world.timers.advance(passed_ms)
        drain(self.world.coordinator.remove_expired(self.world.shard.now_ms()))
        now_ms = self.world.timers.now_ms
        committed, unstable = self._committed(), self._unstable()
        self._forget(
            lambda commit: (
                commit.key not in unstable
                and now_ms - committed[commit.key].time_ms >= RETENTION_MS
            )
        )
        assert set(self.world.groups) == {commit.key[0] for commit in self.model}

    @rule()
    def restart(self) -> None:
        self.world.restart()

    def _forget(self, is_gone: Callable[[Commit], bool]) -> None:
        self.model = [commit for commit in self.model if not is_gone(commit)]

    def _committed(self) -> dict[Key, Commit]:
        return {commit.key: commit for commit in self.model if commit.open_by == NO_PRODUCER_ID}

    def _unstable(self) -> set[Key]:
        return {commit.key for commit in self.model if commit.open_by != NO_PRODUCER_ID}

    @invariant()
    def a_partition_is_unstable_while_a_transaction_is_open(self) -> None:
        everything = {topic: list(range(PARTITIONS)) for topic in TOPICS}
        unstable = {
            (group_id, topic.name, partition.partition_index)
            for group_id in self.world.groups
            for topic in self.world.fetch(group_id, everything, require_stable=True).topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        }
        assert unstable == self._unstable()

    @invariant()
    def what_is_fetched_is_what_was_committed_last(self) -> None:
        fetched = {
            (group_id, topic, index): offset
            for group_id in self.world.groups
            for topic, indexes in self.world.offsets(group_id).items()
            for index, offset in indexes.items()
        }
        assert fetched == {key: commit.offset for key, commit in self._committed().items()}


TestOffsetsAgainstModel = OffsetsAgainstModel.TestCase
TestOffsetsAgainstModel.settings = settings(max_examples=100, stateful_step_count=30)

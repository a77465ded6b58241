"""A log and a list, given the same commands, must stay the same (reliability rows 22, 26).

The commands: append, repeat, leave a gap, use an old epoch, roll, sync, truncate, delete from the
front, close, crash and kill, in any order. After each of them the two are compared; now and then
everything is read from every offset.
"""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.log_start import move_log_starts
from klamm.log.memory_fs import MemoryFileSystem, keep_bytes, keep_names
from klamm.log.partition_log import AppendResult
from klamm.log.tests.model import INT32_MAX, ModelBatch, ModelLog
from klamm.log.tests.support import NOW_MS, open_one, read_all
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.record import build_batch

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150)
# One of them comes to the end of the sequence numbers soon.
FIRST_SEQUENCE = {1: 0, 2: INT32_MAX - 3}

timestamp_lists = st.lists(st.integers(NOW_MS - 50, NOW_MS), min_size=1, max_size=3)
producer_ids = st.sampled_from(sorted(FIRST_SEQUENCE))


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.fs = MemoryFileSystem()
        self.manager, self.log = open_one(self.fs, CONFIG)
        self.model = ModelLog()
        self.leader_epoch = 0
        self.count = 0

    # --- appending ---

    def append(
        self, timestamps: list[int], producer_id: int = -1, epoch: int = -1, sequence: int = -1
    ) -> tuple[AppendResult, ModelBatch]:
        values = tuple(b"%d" % (self.count + index) for index in range(len(timestamps)))
        self.count += len(values)
        records = build_batch(
            [(None, value, (), at) for value, at in zip(values, timestamps, strict=True)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        result = self.log.append(records, leader_epoch=self.leader_epoch, now_ms=NOW_MS)
        written = ModelBatch(
            self.model.end_offset,
            values,
            tuple(timestamps),
            producer_id,
            epoch,
            sequence,
            self.leader_epoch,
        )
        return result, written

    def append_as_producer(
        self, producer_id: int, epoch: int, sequence: int, timestamps: list[int]
    ) -> None:
        """Append, and expect of the log what the list says."""
        verdict = self.model.judge(producer_id, epoch, sequence, len(timestamps))
        end_offset = self.log.log_end_offset
        if isinstance(verdict, ErrorCode):
            with pytest.raises(LogError) as refused:
                self.append(timestamps, producer_id, epoch, sequence)
            assert refused.value.code == verdict
            assert self.log.log_end_offset == end_offset
            return
        result, written = self.append(timestamps, producer_id, epoch, sequence)
        if verdict is None:
            assert not result.duplicate
            assert result.base_offset == written.base_offset
            self.model.batches.append(written)
        else:
            assert result.duplicate
            assert (result.base_offset, result.last_offset) == (
                verdict.base_offset,
                verdict.last_offset,
            )

    def next_of(self, producer_id: int) -> tuple[int, int]:
        """The epoch and sequence with which the producer would go on."""
        window = self.model.window(producer_id)
        if not window:
            return 0, FIRST_SEQUENCE[producer_id]
        return window[-1].producer_epoch, (window[-1].last_sequence + 1) % (INT32_MAX + 1)

    @rule(timestamps=timestamp_lists)
    def append_plain(self, timestamps: list[int]) -> None:
        result, written = self.append(timestamps)
        assert (result.base_offset, result.last_offset) == (
            written.base_offset,
            written.last_offset,
        )
        self.model.batches.append(written)

    @rule(producer_id=producer_ids, timestamps=timestamp_lists)
    def append_next(self, producer_id: int, timestamps: list[int]) -> None:
        epoch, sequence = self.next_of(producer_id)
        self.append_as_producer(producer_id, epoch, sequence, timestamps)

    @rule(producer_id=producer_ids, back=st.integers(1, 8))
    def append_again(self, producer_id: int, back: int) -> None:
        batches = self.model.of_producer(producer_id)
        if len(batches) >= back:
            batch = batches[-back]
            self.append_as_producer(
                producer_id, batch.producer_epoch, batch.sequence, list(batch.timestamps)
            )

    @rule(producer_id=producer_ids, gap=st.integers(-3, 3), timestamps=timestamp_lists)
    def append_with_gap(self, producer_id: int, gap: int, timestamps: list[int]) -> None:
        epoch, sequence = self.next_of(producer_id)
        sequence = (sequence + gap) % (INT32_MAX + 1)
        self.append_as_producer(producer_id, epoch, sequence, timestamps)

    @rule(
        producer_id=producer_ids,
        change=st.sampled_from([-1, 1]),
        sequence=st.sampled_from([0, 0, 1]),
        timestamps=timestamp_lists,
    )
    def append_in_another_epoch(
        self, producer_id: int, change: int, sequence: int, timestamps: list[int]
    ) -> None:
        epoch, _ = self.next_of(producer_id)
        if epoch + change >= 0:
            self.append_as_producer(producer_id, epoch + change, sequence, timestamps)

    # --- everything else ---

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.model.end_offset

    @rule()
    def elect(self) -> None:
        self.leader_epoch += 1

    @rule(share=st.integers(0, 100))
    def advance_high_watermark(self, share: int) -> None:
        self.log.advance_high_watermark(self.model.end_offset * share // 100)

    @rule(share=st.integers(0, 100))
    def delete_from_the_front(self, share: int) -> None:
        offset = self.log.high_watermark * share // 100
        run_inline(move_log_starts(self.manager, [(self.log, offset)]))
        self.model.log_start_offset = max(self.model.log_start_offset, offset)
        self.log.remove_segments_below_log_start()

    @precondition(lambda self: self.model.end_offset > self.model.log_start_offset)
    @rule(share=st.integers(0, 100))
    def truncate(self, share: int) -> None:
        start, end = self.model.log_start_offset, self.model.end_offset
        offset = start + (end - start) * share // 100
        if offset == end:
            return
        self.log.truncate_to(offset, NOW_MS)
        self.model.truncate_to(offset)

    def reopen(self, fs: MemoryFileSystem) -> None:
        self.fs = fs
        self.manager, self.log = open_one(fs, CONFIG)

    @rule()
    def close_and_open(self) -> None:
        self.manager.close()
        self.reopen(self.fs)
        assert self.manager.was_clean

    @rule()
    def kill(self) -> None:
        self.reopen(self.fs.after_kill())

    @rule()
    def sync_and_crash(self) -> None:
        self.log.flush()
        self.reopen(self.fs.after_crash())

    @rule(checkpoint=st.booleans())
    def crash_that_keeps_all(self, checkpoint: bool) -> None:
        if checkpoint:
            self.manager.write_checkpoints()
        self.reopen(self.fs.after_crash(keep_bytes, keep_names))

    # --- the comparison ---

    @invariant()
    def offsets_agree(self) -> None:
        assert self.log.log_end_offset == self.model.end_offset
        assert self.log.log_start_offset == self.model.log_start_offset
        assert self.log.log_start_offset <= self.log.high_watermark <= self.log.log_end_offset

    @invariant()
    def producers_agree(self) -> None:
        for producer_id in FIRST_SEQUENCE:
            window = self.model.window(producer_id)
            entry = self.log.producers.entries.get(producer_id)
            if entry is None:
                # Replay can't know a producer of which nothing is left in the log.
                assert all(batch.last_offset < self.log.log_start_offset for batch in window)
                continue
            assert [
                (batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset)
                for batch in entry.batches
            ] == [(*batch.identity, batch.base_offset, batch.last_offset) for batch in window]
            assert entry.producer_epoch == window[-1].producer_epoch

    @invariant()
    def epochs_agree(self) -> None:
        known = [
            (epoch, start)
            for epoch, start in self.log.leader_epochs.entries
            if start > self.log.log_start_offset
        ]
        expected = [e for e in self.model.epochs() if e[1] > self.log.log_start_offset]
        assert known == expected

    @rule()
    def read_everything(self) -> None:
        records = self.model.records()
        assert read_all(self.log) == [(offset, value) for offset, value, _ in records]

    @rule()
    def read_from_every_offset(self) -> None:
        for batch in self.model.batches:
            for offset in range(batch.base_offset, batch.last_offset + 1):
                if offset < self.model.log_start_offset:
                    continue
                header = read_batch_header(self.log.read(offset, 1).slice.read())
                assert (header.base_offset, header.last_offset) == (
                    batch.base_offset,
                    batch.last_offset,
                )
        assert not len(self.log.read(self.model.end_offset, 100))

    @rule(timestamp=st.integers(NOW_MS - 60, NOW_MS + 10))
    def search_timestamp(self, timestamp: int) -> None:
        found = self.log.offset_for_timestamp(timestamp)
        expected = self.model.first_not_older_than(timestamp)
        assert (None if found is None else found[:2]) == expected

    @rule()
    def search_max_timestamp(self) -> None:
        found = self.log.offset_of_max_timestamp()
        if self.model.log_start_offset == 0:
            records = self.model.records()
            if not records:
                assert found is None
            else:
                latest = max(timestamp for *_, timestamp in records)
                first = next(offset for offset, _, at in records if at == latest)
                assert found is not None
                assert found[:2] == (latest, first)

    def teardown(self) -> None:
        # Whatever has happened, the log can be closed and opened.
        self.manager.close()
        _, log = open_one(self.fs.after_kill(), CONFIG)
        assert log.log_end_offset == self.model.end_offset


LogMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestLogAgainstList = LogMachine.TestCase

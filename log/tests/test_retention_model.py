"""Retention against a model, with clocks that are drawn (Hypothesis).

Whatever comes before it, a run takes a segment only for a reason, leaves none that has one (unless
the clock has jumped), and never more than that; the log's start only moves forward, and everything
behind it can be read. The reasons are found from the records alone, not from the segments' indexes.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from klamm.log.clock_jumps import JUMP_MS_MIN
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.log_start import delete_records
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.retention import Retention
from klamm.log.tests.support import NOW_MS, append, batch, open_one, read_all
from klamm.log.work import run_inline

SIZE = len(batch(b"00000000"))
CONFIG = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=1, file_delete_delay_ms=50)
HOUR_MS = 60 * 60 * 1000


class Machine:
    """A log, two clocks, and all records that were written."""

    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        self.config = CONFIG
        self.wall_ms = NOW_MS
        self.monotonic_ms = 0
        self.timestamps: list[int] = []
        self.start = 0
        self.high_watermark = 0
        self.last_drift_ms: int | None = None
        self.open()

    def open(self) -> None:
        self.manager, self.log = open_one(self.fs, self.config)
        self.retention = Retention(self.manager)
        self.last_drift_ms = None
        assert self.log.log_start_offset == self.start

    def write(self, age_ms: int, count: int) -> None:
        for _ in range(count):
            timestamp = self.wall_ms - age_ms
            data = batch(b"%08d" % len(self.timestamps), timestamp=timestamp)
            append(self.log, data, self.wall_ms)
            self.timestamps.append(timestamp)

    def commit(self, share: int) -> None:
        self.log.advance_high_watermark(self.log.log_end_offset * share // 100)
        self.high_watermark = self.log.high_watermark

    def configure(self, retention_ms: int, retention_segments: int) -> None:
        retention_bytes = -1 if retention_segments < 0 else retention_segments * SIZE
        self.config = replace(
            self.config, retention_ms=retention_ms, retention_bytes=retention_bytes
        )
        self.log.update_config(self.config)

    def delete(self, offset: int) -> None:
        (result,) = run_inline(delete_records(self.manager, [(self.log, offset)]))
        target = self.high_watermark if offset == -1 else offset
        if target > self.high_watermark:
            assert isinstance(result, LogError)
        else:
            self.start = max(self.start, target)
            assert result == self.start

    def pass_time(self, elapsed_ms: int, jump_ms: int) -> None:
        self.monotonic_ms += elapsed_ms
        self.wall_ms += elapsed_ms + jump_ms

    def restart(self, *, clean: bool) -> None:
        if clean:
            self.manager.close()
        else:
            self.log.flush()
            self.manager.write_checkpoints()
        self.fs = self.fs.after_kill()
        self.open()
        self.log.advance_high_watermark(self.high_watermark)

    # --- a run, and what it may do ---

    def run(self) -> None:
        drift_ms = self.wall_ms - self.monotonic_ms
        has_jumped = (
            self.last_drift_ms is not None and abs(drift_ms - self.last_drift_ms) >= JUMP_MS_MIN
        )
        self.last_drift_ms = drift_ms
        assert self.retention.may_run(self.wall_ms, self.monotonic_ms) == (not has_jumped)
        if has_jumped:
            return
        log = self.log
        bases = [*log.segments.base_offsets, log.log_end_offset]
        old_start = self.start
        removed = run_inline(self.retention.delete_old_segments(log, self.wall_ms)).segments
        self.start = max(old_start, bases[removed] if removed else 0)
        assert log.log_start_offset == self.start
        assert log.segments.first.base_offset == bases[removed]
        for index in range(removed):
            assert self.has_reason(bases, index, old_start)
        if removed + 1 < len(bases) and bases[removed] < bases[-1]:
            assert not self.has_reason(bases, removed, old_start)

    def has_reason(self, bases: list[int], index: int, start: int) -> bool:
        """Say whether the segment at an index may go when all before it have gone."""
        first, end = bases[index], bases[index + 1]
        if end > self.high_watermark:
            return False
        if index + 2 < len(bases) and end <= start:
            return True
        left = (bases[-1] - end) * SIZE
        if 0 <= self.config.retention_bytes <= left:
            return True
        newest = max(self.timestamps[first:end], default=-1)
        return 0 <= self.config.retention_ms < self.wall_ms - newest

    def check(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, len(self.timestamps))
        assert [(r.offset, r.value) for r in read_all(log)] == [
            (offset, b"%08d" % offset) for offset in range(self.start, len(self.timestamps))
        ]
        away = [name for name in self.fs.files() if name.endswith(".deleted")]
        assert len(away) == len(self.manager.environment.deletions)
        remove = self.manager.environment.deletions.due(self.monotonic_ms)
        if remove is not None:
            remove()


ages = st.sampled_from([0, 1000, HOUR_MS, 5 * HOUR_MS, -HOUR_MS])
operations = st.one_of(
    st.tuples(st.just("write"), ages, st.integers(1, 7)),
    st.tuples(st.just("write"), ages, st.integers(1, 7)),
    st.tuples(st.just("commit"), st.sampled_from([50, 90, 100, 100])),
    st.tuples(
        st.just("configure"),
        st.sampled_from([-1, 0, 1000, HOUR_MS, 3 * HOUR_MS]),
        st.sampled_from([-1, -1, 0, 1, 4, 9]),
    ),
    st.tuples(st.just("delete"), st.integers(-1, 30)),
    st.tuples(
        st.just("time"),
        st.sampled_from([0, 10, 1000, HOUR_MS]),
        st.sampled_from([0, 0, 100, 48 * HOUR_MS, -48 * HOUR_MS]),
    ),
    st.tuples(st.just("run")),
    st.tuples(st.just("run")),
    st.tuples(st.just("restart"), st.booleans()),
)


@given(st.lists(operations, min_size=10, max_size=40))
def test_a_segment_goes_for_a_reason_and_only_then(steps: list[tuple[object, ...]]) -> None:
    machine = Machine()
    for step in steps:
        match step:
            case ("write", int(age_ms), int(count)):
                machine.write(age_ms, count)
            case ("commit", int(share)):
                machine.commit(share)
            case ("configure", int(retention_ms), int(segments)):
                machine.configure(retention_ms, segments)
            case ("delete", int(offset)):
                machine.delete(offset)
            case ("time", int(elapsed_ms), int(jump_ms)):
                machine.pass_time(elapsed_ms, jump_ms)
            case ("run",):
                machine.run()
            case ("restart", bool(clean)):
                machine.restart(clean=clean)
        machine.check()

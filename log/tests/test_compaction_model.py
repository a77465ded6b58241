"""Compaction against a log that forgets nothing (Hypothesis).

The model keeps every record that was ever written and says by the rules alone which of them have to
be there after each compaction. Producers, transactions, restarts with and without snapshots and
maps that are too small come in any order.
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.compaction import (
    COMPACT,
    batches_of,
    committed_records,
    compact,
    records_of,
)
from klamm.log.tests.support import NOW_MS, ROOT, open_one
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import build_batch

RETENTION_MS = 1000
CONFIG = LogConfig(
    cleanup_policy=COMPACT,
    segment_bytes=350,
    index_interval_bytes=150,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=RETENTION_MS,
)
KEYS = [b"a", b"b", b"c", b"d" * 30]
RECOVERY_POINTS = f"{ROOT}/recovery-point-offset-checkpoint"
IDEMPOTENT = [1, 2]
TRANSACTIONAL = [11, 12]

Entry = tuple[int, bytes | None, bytes | None]


@dataclass
class ModelRecord:
    offset: int
    key: bytes
    value: bytes | None
    timestamp: int
    transaction: int | None
    first_cleaned_ms: int | None = None
    is_gone: bool = False


@dataclass
class ModelProducer:
    epoch: int = 0
    next_sequence: int = 0
    transaction: int | None = None
    last_batch: bytes | None = None
    last_offset: int = -1


@dataclass
class Model:
    """Every record that was ever written."""

    records: list[ModelRecord] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    ended: dict[int, int] = field(default_factory=dict)
    producers: dict[int, ModelProducer] = field(default_factory=dict)
    transactions: int = 0

    def on_compacted(self, end_offset: int, now_ms: int) -> None:
        """Decide which records are gone, now that everything below end_offset is compacted."""
        latest: dict[bytes, int] = {}
        for record in self.records:
            if record.offset < end_offset and record.transaction not in self.aborted:
                latest[record.key] = record.offset
        for record in self.records:
            if record.offset >= end_offset:
                continue
            first = record.first_cleaned_ms
            is_expired = (
                record.value is None and first is not None and now_ms >= first + RETENTION_MS
            )
            if (
                record.transaction in self.aborted
                or record.offset < latest[record.key]
                or is_expired
            ):
                record.is_gone = True
            if first is None:
                record.first_cleaned_ms = now_ms

    def present(self) -> list[ModelRecord]:
        return [record for record in self.records if not record.is_gone]

    def entries(self) -> list[Entry]:
        return [(r.offset, r.key, r.value) for r in self.present()]

    def committed(self, last_stable_offset: int) -> list[Entry]:
        return [
            (r.offset, r.key, r.value)
            for r in self.present()
            if r.transaction not in self.aborted and r.offset < last_stable_offset
        ]


class Machine:
    """The log and its model, side by side."""

    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        self.model = Model()
        self.now_ms = NOW_MS
        self.open()

    def open(self) -> None:
        self.manager, self.log = open_one(self.fs, CONFIG)
        self.log.producers.verification_required = False
        self.log.advance_high_watermark(self.log.log_end_offset)

    def write(
        self, producer_id: int | None, records: list[tuple[int, bool]], codec: int, age_ms: int
    ) -> None:
        producer = None
        if producer_id is not None:
            producer = self.model.producers.setdefault(producer_id, ModelProducer())
            if producer_id in TRANSACTIONAL and producer.transaction is None:
                producer.transaction = self.model.transactions
                self.model.transactions += 1
        base = self.log.log_end_offset
        built = [
            (KEYS[key], None if is_tombstone else b"%d" % (base + at), (), NOW_MS - age_ms + at)
            for at, (key, is_tombstone) in enumerate(records)
        ]
        data = build_batch(
            built,
            codec=codec,
            producer_id=-1 if producer_id is None else producer_id,
            producer_epoch=-1 if producer is None else producer.epoch,
            base_sequence=-1 if producer is None else producer.next_sequence,
            transactional=producer is not None and producer.transaction is not None,
        )
        result = self.log.append(data, leader_epoch=0, now_ms=self.now_ms)
        assert result.base_offset == base
        if producer is not None:
            producer.next_sequence += len(built)
            producer.last_batch = data
            producer.last_offset = base
        transaction = None if producer is None else producer.transaction
        self.model.records += [
            ModelRecord(base + at, key or b"", value, timestamp, transaction)
            for at, (key, value, _, timestamp) in enumerate(built)
        ]

    def end_transaction(self, producer_id: int, *, commit: bool, bumps_epoch: bool) -> None:
        producer = self.model.producers.get(producer_id)
        if producer is None or producer.transaction is None:
            return
        if bumps_epoch:
            producer.epoch += 1
            producer.next_sequence = 0
            producer.last_batch = None
        marker = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            commit=commit,
            coordinator_epoch=0,
            # So old that no search for a record comes upon it.
            timestamp=NOW_MS - 100,
        )
        result = self.log.append(
            marker,
            leader_epoch=0,
            now_ms=self.now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=2 if bumps_epoch else 0,
        )
        self.model.ended[producer.transaction] = result.base_offset
        if not commit:
            self.model.aborted.add(producer.transaction)
        producer.transaction = None

    def compact(self, later_ms: int, map_bytes: int) -> None:
        self.now_ms += later_ms
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.log.flush()
        if compact(self.manager, self.now_ms, dedupe_buffer_size=map_bytes) is not None:
            assert self.log.cleaner_offset is not None
            self.model.on_compacted(self.log.cleaner_offset, self.now_ms)

    def restart(self, *, clean: bool, keeps_snapshots: bool) -> None:
        if clean:
            self.manager.close()
        else:
            self.log.flush()
        self.fs = self.fs.after_kill()
        if not keeps_snapshots:
            for name in [name for name in self.fs.files() if name.endswith(".snapshot")]:
                self.fs.remove(name)
            for name in [name for name in self.fs.files() if name.endswith("cleanshutdown")]:
                self.fs.remove(name)
            # Everything is read again.
            self.fs.open(RECOVERY_POINTS, create=True)
            self.fs.overwrite(RECOVERY_POINTS, b"0\n0\n")
        self.open()

    def retry(self, producer_id: int) -> None:
        producer = self.model.producers.get(producer_id)
        if producer is not None and producer.last_batch is not None:
            result = self.log.append(producer.last_batch, leader_epoch=0, now_ms=self.now_ms)
            assert (result.duplicate, result.base_offset) == (True, producer.last_offset)

    def check(self) -> None:
        log, model = self.log, self.model
        log.advance_high_watermark(log.log_end_offset)
        assert records_of(log) == model.entries()
        assert committed_records(log) == model.committed(log.last_stable_offset)
        batches = batches_of(log)
        offsets = {batch.header.base_offset for batch in batches}
        open_offsets = {
            min(r.offset for r in model.records if r.transaction == producer.transaction)
            for producer in model.producers.values()
            if producer.transaction is not None
        }
        assert log.last_stable_offset == min(open_offsets, default=log.log_end_offset)
        for record in model.present():
            if record.transaction is not None and record.transaction in model.ended:
                assert model.ended[record.transaction] in offsets
        for index in range(len(log.segments) - 1):
            assert log.segments[index].next_offset() == log.segments[index + 1].base_offset
        for producer_id, producer in model.producers.items():
            entry = log.producers.entries[producer_id]
            assert entry.producer_epoch == producer.epoch
            assert entry.last_sequence == producer.next_sequence - 1

    def check_reads(self) -> None:
        """Every offset and every timestamp is found."""
        log = self.log
        headers = [batch.header for batch in batches_of(log)]
        for offset in range(log.log_end_offset):
            found = read_batch_header(log.read(offset, 100).slice.read())
            assert found == next(header for header in headers if header.last_offset >= offset)
        present = self.model.present()
        for timestamp in range(NOW_MS - 42, NOW_MS + 3, 7):
            result = log.offset_for_timestamp(timestamp)
            expected = next((r for r in present if r.timestamp >= timestamp), None)
            assert (result and result.offset) == (expected and expected.offset)


key_and_tombstone = st.tuples(
    st.integers(0, len(KEYS) - 1), st.sampled_from([False, False, False, True])
)
some_records = st.lists(key_and_tombstone, min_size=1, max_size=4)
producers = st.sampled_from([None, *IDEMPOTENT, *TRANSACTIONAL, *TRANSACTIONAL])
operations = st.one_of(
    st.tuples(
        st.just("write"),
        producers,
        some_records,
        st.sampled_from([0, 0, 0, 1, 3, 4]),
        st.integers(0, 40),
    ),
    st.tuples(st.just("write"), producers, some_records, st.just(0), st.integers(0, 40)),
    st.tuples(st.just("end"), st.sampled_from(TRANSACTIONAL), st.booleans(), st.booleans()),
    st.tuples(st.just("end all"), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(
        st.just("compact"),
        st.sampled_from([0, 1, RETENTION_MS - 1, RETENTION_MS, 2 * RETENTION_MS]),
        st.sampled_from([1, 1000, 10**6]),
    ),
    st.tuples(st.just("restart"), st.booleans(), st.booleans()),
    st.tuples(st.just("retry"), st.sampled_from([*IDEMPOTENT, *TRANSACTIONAL])),
)


@given(st.lists(operations, min_size=15, max_size=40))
def test_what_is_left_is_what_the_rules_say(steps: list[tuple[object, ...]]) -> None:
    machine = Machine()
    for step in steps:
        match step:
            case ("write", producer_id, list(records), int(codec), int(age_ms)):
                assert producer_id is None or isinstance(producer_id, int)
                machine.write(producer_id, records, codec, age_ms)
            case ("end", int(producer_id), bool(commit), bool(bumps_epoch)):
                machine.end_transaction(producer_id, commit=commit, bumps_epoch=bumps_epoch)
            case ("end all", bool(commit)):
                for producer_id in TRANSACTIONAL:
                    machine.end_transaction(producer_id, commit=commit, bumps_epoch=commit)
            case ("roll",):
                machine.log.roll(machine.now_ms)
            case ("compact", int(later_ms), int(map_bytes)):
                machine.log.roll(machine.now_ms)
                machine.compact(later_ms, map_bytes)
                machine.check()
            case ("restart", bool(clean), bool(keeps_snapshots)):
                machine.restart(clean=clean, keeps_snapshots=keeps_snapshots)
                machine.check()
            case ("retry", int(producer_id)):
                machine.retry(producer_id)
    for later_ms in (0, RETENTION_MS, RETENTION_MS):
        for producer_id in TRANSACTIONAL:
            machine.end_transaction(producer_id, commit=later_ms > 0, bumps_epoch=False)
        machine.log.roll(machine.now_ms)
        machine.compact(later_ms, 10**6)
        machine.check()
        machine.write(None, [(0, False)], 0, 0)
        machine.write(TRANSACTIONAL[0], [(1, False), (0, False)], 0, 0)
    machine.check_reads()
    machine.restart(clean=False, keeps_snapshots=False)
    machine.check()

"""The parts of compaction one by one: scan, key map, groups, pace."""

import threading
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.log.cleaner.cancellation import Cancellation, CleaningAborted
from klamm.log.cleaner.copy import CleanerStats
from klamm.log.cleaner.key_map import (
    DIGEST_BYTES,
    ENTRY_BYTES,
    SUPERSEDED,
    TOMBSTONE,
    KeyMap,
    digest,
)
from klamm.log.cleaner.pace import BURST_S, PAUSE_S, TURN_S, Pace, Throttle
from klamm.log.cleaner.plan import GROUP_SEGMENTS_MAX, SegmentToClean, group_segments
from klamm.log.cleaner.scan import (
    max_timestamp_delta,
    scan_keys,
    split_records,
    with_timestamp_delta,
)
from klamm.log.config import INT32_MAX, LogConfig
from klamm.wire.errors import WireError
from klamm.wire.records.batch import BATCH_HEADER_SIZE
from klamm.wire.records.record import RecordToBuild, build_batch, encode_record, iter_records

# --- records -------------------------------------------------------------------------------------

lengths = st.sampled_from([0, 1, 23, 24, 25, 63, 64, 127, 128, 200, 9000])
data_of_any_length = st.one_of(st.none(), st.builds(lambda size: b"x" * size, lengths))
headers = st.lists(st.tuples(st.sampled_from(["", "h"]), data_of_any_length), max_size=2)
timestamps = st.sampled_from([0, 1, 63, 64, 5000, 10**6, 10**12, -1, -64, -65])
records = st.lists(
    st.tuples(data_of_any_length, data_of_any_length, headers, timestamps), min_size=1, max_size=130
)


def body(built: list[RecordToBuild]) -> bytes:
    return build_batch(built)[BATCH_HEADER_SIZE:]


@given(records)
def test_scanning_finds_what_decoding_finds(built: list[RecordToBuild]) -> None:
    keys, tombstones = scan_keys(body(built), len(built))
    expected = [key for key, _, _, _ in built]
    assert keys == [
        digest(key) if key is not None and len(key) >= DIGEST_BYTES else key for key in expected
    ]
    assert tombstones == [index for index, record in enumerate(built) if record[1] is None]


@given(records, st.randoms(use_true_random=False))
def test_the_records_that_are_kept_are_unchanged(
    built: list[RecordToBuild], random: object
) -> None:
    keeps = bytes(random.getrandbits(1) for _ in built)  # type: ignore[attr-defined]
    kept = split_records(body(built), keeps)
    base = built[0][3]
    assert kept == [
        encode_record(index, record[3] - base, *record[:3])
        for index, record in enumerate(built)
        if keeps[index]
    ]
    if kept:
        deltas = [record[3] - base for record, keep in zip(built, keeps, strict=True) if keep]
        assert max_timestamp_delta(kept) == max(deltas)
        moved = [with_timestamp_delta(record, -12345) for record in kept]
        assert max_timestamp_delta(moved) == max(deltas) - 12345


@given(records, st.data())
def test_damaged_records_are_refused_or_read(
    built: list[RecordToBuild], data: st.DataObject
) -> None:
    damaged = bytearray(body(built))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    try:
        keys, _ = scan_keys(bytes(damaged), len(built))
    except WireError:
        return
    assert len(keys) == len(built)


@pytest.mark.parametrize("cut", [1, 2, 5, 9])
def test_bytes_too_many_or_too_few_are_refused(cut: int) -> None:
    data = body([(b"k", b"value", (), 0), (b"k", b"value", (), 0)])
    for wrong in (data[:-cut], data + bytes(cut), data[: len(data) // 2]):
        with pytest.raises(WireError):
            scan_keys(wrong, 2)


def test_a_record_that_is_shorter_than_its_key_is_refused() -> None:
    data = bytearray(body([(b"key", b"", (), 0)]))
    data[0] = 2 * 5
    with pytest.raises(WireError):
        scan_keys(bytes(data[:6]), 1)


# --- the key map ---------------------------------------------------------------------------------


def key_map(bytes_max: int = 10**6, load_factor: float = 0.9) -> KeyMap:
    return KeyMap(bytes_max, load_factor, first_offset=100)


def test_a_later_record_supersedes_the_one_before() -> None:
    found = key_map()
    found.put([b"a", b"b", b"a", b"c"], [1])
    assert list(found.states) == [SUPERSEDED, TOMBSTONE, 0, 0]
    found.put_aborted(2)
    found.put([b"a", b"b"], [0])
    assert list(found.states) == [
        SUPERSEDED,
        SUPERSEDED | TOMBSTONE,
        SUPERSEDED,
        0,
        SUPERSEDED,
        SUPERSEDED,
        TOMBSTONE,
        0,
    ]
    assert len(found) == 3


def test_records_without_a_key_are_never_kept() -> None:
    found = key_map()
    found.put([None, b"a", None], [])
    found.put([None], [])
    assert list(found.states) == [SUPERSEDED, 0, SUPERSEDED, SUPERSEDED]
    assert (len(found), found.keyless) == (1, 3)


def test_the_map_is_bounded_but_always_takes_one_batch() -> None:
    found = key_map(bytes_max=100 * ENTRY_BYTES, load_factor=0.5)
    assert found.has_room(10_000)
    found.put([b"%d" % index for index in range(40)], [])
    assert found.has_room(9)
    # Each record takes a byte besides.
    assert not found.has_room(10)
    found.put([b"0"] * 9, [])
    assert not found.has_room(10)


def test_a_map_of_the_default_size_takes_no_more_memory_than_that() -> None:
    bytes_max = 4 * 1024 * 1024
    found = KeyMap(bytes_max, 0.9, 0)
    tracemalloc.start()
    number = 0
    while found.has_room(100):
        keys = [digest(b"%d" % (number + index)) for index in range(100)]
        found.put(keys, [])
        number += 100
    del keys
    current, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number > 20_000
    assert current <= bytes_max
    # While a dictionary grows, both its old and its new table are there.
    assert peak <= 1.5 * bytes_max


# --- groups --------------------------------------------------------------------------------------

CONFIG = LogConfig(segment_bytes=1000, segment_index_bytes=100)


def segments(*sizes: int, index: int = 0, time: int = 0) -> list[SegmentToClean]:
    return [SegmentToClean(10 * at, size, index, time) for at, size in enumerate(sizes)]


def grouped(found: list[SegmentToClean], config: LogConfig = CONFIG) -> list[list[int]]:
    end = found[-1].base_offset + 10 if found else 0
    return [[s.size for s in group] for group in group_segments(found, config, end)]


def test_neighbours_that_fit_together_become_one() -> None:
    assert grouped([]) == []
    assert grouped(segments(400, 400, 400)) == [[400, 400], [400]]
    assert grouped(segments(400, 600, 1)) == [[400, 600], [1]]
    assert grouped(segments(2000, 100, 100)) == [[2000], [100, 100]]
    assert grouped(segments(0, 0, 0)) == [[0, 0, 0]]


def test_indexes_have_to_fit_as_well() -> None:
    assert grouped(segments(1, 1, 1, index=50)) == [[1, 1], [1]]
    assert grouped(segments(1, 1, 1, time=51)) == [[1], [1], [1]]


def test_offsets_have_to_fit_into_32_bits() -> None:
    far = [
        SegmentToClean(0, 10),
        SegmentToClean(100, 10),
        SegmentToClean(INT32_MAX - 5, 10),
        SegmentToClean(INT32_MAX + 2, 0),
        SegmentToClean(INT32_MAX + 20, 10),
    ]
    groups = group_segments(far, CONFIG, INT32_MAX + 30)
    assert [[s.base_offset for s in group] for group in groups] == [
        [0, 100],
        [INT32_MAX - 5, INT32_MAX + 2, INT32_MAX + 20],
    ]
    # An empty segment has no offsets.
    groups = group_segments(far[:1] + far[3:4], CONFIG, 2**40)
    assert len(groups) == 1


def test_a_group_is_no_longer_than_one_step_may_take() -> None:
    found = segments(*[1] * (GROUP_SEGMENTS_MAX + 1))
    assert [len(group) for group in grouped(found, replace(CONFIG, segment_bytes=10**6))] == [
        GROUP_SEGMENTS_MAX,
        1,
    ]


# --- pace ----------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_throttle_keeps_the_rate() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock)
    waited = 0.0
    for _ in range(50):
        delay = throttle.delay_s(100)
        clock.now += delay
        waited += delay
    assert waited == pytest.approx(5.0)
    clock.now += 1000
    # A calm is not made up for.
    assert throttle.delay_s(1000) == pytest.approx(1 - BURST_S)
    assert throttle.delay_s(1000) == pytest.approx(2 - BURST_S)


def test_without_a_limit_there_is_no_delay() -> None:
    throttle = Throttle(1.7976931348623157e308, Clock())
    assert [throttle.delay_s(2**40) for _ in range(5)] == [0.0] * 5


class Waits(Cancellation):
    """A cancellation that only notes how long it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, seconds: float) -> None:
        self.check()
        self.seconds.append(seconds)


def test_the_thread_pauses_after_each_turn() -> None:
    clock, waits = Clock(), Waits()
    pace = Pace(Throttle(10**9, clock), waits, clock)
    pace.moved(100)
    assert waits.seconds == []
    clock.now += TURN_S
    pace.moved(100)
    pace.moved(100)
    assert waits.seconds == [PAUSE_S]


def test_a_slow_throttle_makes_it_wait_longer() -> None:
    clock, waits = Clock(), Waits()
    pace = Pace(Throttle(1000, clock), waits, clock)
    clock.now += BURST_S
    pace.moved(2000)
    assert waits.seconds == [pytest.approx(2 - BURST_S)]


def test_a_cancelled_compaction_ends_at_its_next_turn() -> None:
    clock, waits = Clock(), Waits()
    pace = Pace(Throttle(1000, clock), waits, clock)
    waits.cancel()
    clock.now += TURN_S
    with pytest.raises(CleaningAborted):
        pace.moved(1)


def test_a_waiting_thread_is_woken_by_the_cancellation() -> None:
    cancellation = Cancellation()
    ended: list[bool] = []

    def wait() -> None:
        try:
            cancellation.wait(60)
        except CleaningAborted:
            ended.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    cancellation.cancel()
    thread.join(30)
    assert ended == [True]


def test_records_read_back_after_the_move_to_a_horizon() -> None:
    built: list[RecordToBuild] = [(b"k", None, [("h", b"v")], 5), (b"l", b"v", (), 7)]
    data = build_batch(built)
    payload = data[BATCH_HEADER_SIZE:]
    kept = split_records(payload, b"\1\1")
    moved = [with_timestamp_delta(record, 10**13) for record in kept]
    back = [with_timestamp_delta(record, -(10**13)) for record in moved]
    assert b"".join(back) == payload
    assert [record.timestamp for record in iter_records(data)] == [5, 7]


# --- what is told ---------------------------------------------------------------------------------


def test_what_a_compaction_did_is_told_in_words() -> None:
    stats = CleanerStats(
        map_bytes_read=500,
        bytes_read=900,
        bytes_written=300,
        records_read=9,
        records_written=3,
        keys=2,
    )
    words = "3 of 9 records and 300 of 900 bytes are left; 2 keys were found in 500 bytes"
    assert str(stats) == f"{words} that were new"
    with_keyless = str(replace(stats, keyless_records=1))
    assert with_keyless.startswith("3 of 9 records and 300 of 900 bytes are left (1 had no key); ")

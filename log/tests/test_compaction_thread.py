"""Compaction in a thread on a real disk, beside appends, reads and searches of the same log."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from klamm.log.cleaner.cleaner import Cleaner
from klamm.log.cleaner.copy import CleanerStats
from klamm.log.cleaner.pace import Throttle
from klamm.log.errors import LogError
from klamm.log.fs import OsFileSystem
from klamm.log.manager import LogManager
from klamm.log.partition_log import PartitionLog
from klamm.log.search import search_timestamp
from klamm.log.tests.compaction import CONFIG, records_of, settle, write
from klamm.log.tests.support import NOW_MS, open_one, read_all
from klamm.log.work import Step, Work

BATCHES = 1500
KEYS = 300
ENDLESS = 1_000_000


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


def filled(root: Path) -> tuple[LogManager, PartitionLog]:
    config = replace(CONFIG, segment_bytes=20_000, index_interval_bytes=500)
    manager, log = open_one(OsFileSystem(), config, str(root))
    for index in range(BATCHES):
        write(log, (b"k%d" % (index % KEYS), b"%d" % index), timestamp=NOW_MS + index)
    settle(log)
    return manager, log


def run_beside(
    work: Work[CleanerStats | None], pool: ThreadPoolExecutor, other: Callable[[], None]
) -> CleanerStats | None:
    """Run the steps of a work in a thread, and something else here as long as they take."""
    step: Step = next(work)
    try:
        while True:
            assert step is not None
            future: Future[object] = pool.submit(step)
            for _ in range(ENDLESS):
                other()
                if future.done():
                    break
            try:
                result = future.result()
            except Exception as error:
                step = work.throw(error)
            else:
                step = work.send(result)
    except StopIteration as end:
        found: CleanerStats | None = end.value
        return found


def test_appends_reads_and_searches_go_on(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    manager, log = filled(tmp_path / "data")
    cleaner = Cleaner(manager, Throttle(1e300))
    candidate = cleaner.choose(manager, NOW_MS)
    assert candidate is not None
    count = 0

    def other() -> None:
        nonlocal count
        write(log, (b"new%d" % (count % 50), b"%d" % count), timestamp=NOW_MS + BATCHES + count)
        log.advance_high_watermark(log.log_end_offset)
        # Whatever was compacted away, the first batch that comes back is at or behind the offset.
        first = read_all(log, count * 37 % log.log_end_offset, 100)[:1]
        assert first
        # The newest records are never compacted.
        found = log.offset_for_timestamp(NOW_MS + BATCHES + count)
        assert found is not None
        assert found.offset == log.log_end_offset - 1
        count += 1

    stats = run_beside(cleaner.clean(candidate, NOW_MS), pool, other)
    assert stats is not None
    assert (stats.records_written, stats.keys) == (KEYS, KEYS)
    assert [(key, value) for _, key, value in records_of(log)] == [
        *((b"k%d" % (i % KEYS), b"%d" % i) for i in range(BATCHES - KEYS, BATCHES)),
        *((b"new%d" % (i % 50), b"%d" % i) for i in range(count)),
    ]
    settle(log)
    candidate = cleaner.choose(manager, NOW_MS)
    assert candidate is not None
    assert run_beside(cleaner.clean(candidate, NOW_MS), pool, lambda: None) is not None
    manager.environment.deletions.all()()
    expected = records_of(log)
    manager.close()
    _, log = open_one(OsFileSystem(), log.config, str(tmp_path / "data"))
    assert records_of(log) == expected


def test_a_throttled_compaction_can_be_cancelled(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    manager, log = filled(tmp_path / "data")
    # A hundred bytes a second: it would take an hour.
    cleaner = Cleaner(manager, Throttle(100))
    candidate = cleaner.choose(manager, NOW_MS)
    assert candidate is not None
    before = records_of(log)
    steps = 0

    def other() -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            log.cancel_cleaning()

    assert run_beside(cleaner.clean(candidate, NOW_MS), pool, other) is None
    assert not log.is_uncleanable
    assert records_of(log) == before
    manager.close()


def test_a_deleted_topic_ends_its_compaction(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    manager, log = filled(tmp_path / "data")
    cleaner = Cleaner(manager, Throttle(100_000))
    candidate = cleaner.choose(manager, NOW_MS)
    assert candidate is not None
    steps = 0

    def other() -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            manager.delete_partition("t", 0)
            manager.remove_deleted()

    assert run_beside(cleaner.clean(candidate, NOW_MS), pool, other) is None
    assert not log.is_uncleanable
    manager.close()
    assert not (tmp_path / "data" / "t-0").exists()


def test_a_search_under_way_survives_a_swap(tmp_path: Path) -> None:
    manager, log = filled(tmp_path / "data")
    target = NOW_MS + BATCHES - 2
    expected = log.offset_for_timestamp(target)
    bases = list(log.segments.base_offsets)
    search = search_timestamp(log.segments, NOW_MS + 700, 0)
    opening = next(search)
    cleaner = Cleaner(manager, Throttle(1e300))
    candidate = cleaner.choose(manager, NOW_MS)
    assert candidate is not None
    with ThreadPoolExecutor(1) as pool:
        run_beside(cleaner.clean(candidate, NOW_MS), pool, lambda: None)
    # The batch was found before; it is read from the file that was its own.
    found = opening()
    assert found is not None
    assert found.timestamp == NOW_MS + 700
    assert log.offset_for_timestamp(target) == expected
    # If nothing is found there, it goes on in what took the place of the segments behind.
    offsets: list[int] = []
    with suppress(StopIteration):
        while True:
            found = opening()
            # Empty batches hold the ends of segments.
            if found is not None:
                offsets.append(found.offset)
            opening = search.send(None)
    last_of_segment = next(base for base in bases if base > 700)
    assert offsets == [*range(700, last_of_segment), *range(BATCHES - KEYS, BATCHES)]
    manager.close()


def test_a_search_in_a_removed_segment_is_refused_and_the_log_stays(tmp_path: Path) -> None:
    manager, log = filled(tmp_path / "data")
    first = log.segments.first
    cleaner = Cleaner(manager, Throttle(1e300))
    candidate = cleaner.choose(manager, NOW_MS)
    assert candidate is not None
    with ThreadPoolExecutor(1) as pool:
        run_beside(cleaner.clean(candidate, NOW_MS), pool, lambda: None)
    manager.environment.deletions.all()()
    with pytest.raises(FileNotFoundError) as missing:
        first.file()
    refusal = log._refuse_read_after(missing.value)
    assert isinstance(refusal, LogError)
    assert not log.is_offline
    manager.close()

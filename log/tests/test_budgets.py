"""The bounds on open files and on memory for indexes (reliability row 38)."""

from klamm.log.checkpoint_files import Checkpoints
from klamm.log.config import LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.index_cache import IndexCache
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.open_files import OpenFiles
from klamm.log.recovery import open_log
from klamm.log.tests.support import NOW_MS, append, batch, values_of

SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=1)


def test_no_more_files_are_open_than_allowed() -> None:
    fs = MemoryFileSystem()
    pool = OpenFiles(fs, 3)
    slots = [pool.slot(f"/{index}") for index in range(10)]
    for slot in slots:
        slot.get(create=True)
        assert fs.open_files <= 3
    assert len(pool) == 3
    # A file that was given up is opened again.
    assert slots[0].get().size() == 0
    assert fs.open_files == 3


def test_a_file_in_use_is_passed_over_once() -> None:
    fs = MemoryFileSystem()
    pool = OpenFiles(fs, 2)
    first, second, third = (pool.slot(f"/{name}") for name in "abc")
    first.get(create=True)
    second.get(create=True)
    first.used, second.used = True, False
    third.get(create=True)
    assert first.file is not None
    assert second.file is None


def test_a_file_that_is_being_sent_stays_open_beyond_its_slot() -> None:
    fs = MemoryFileSystem()
    pool = OpenFiles(fs, 1)
    slot = pool.slot("/a")
    file = slot.get(create=True)
    pool.slot("/b").get(create=True)
    assert slot.file is None
    file.append([b"x"], 1)
    assert fs.open_files == 2
    del file
    assert fs.open_files == 1


def test_a_closed_slot_leaves_the_pool() -> None:
    pool = OpenFiles(MemoryFileSystem(), 2)
    slot = pool.slot("/a")
    slot.get(create=True)
    slot.close()
    assert len(pool) == 0


def test_many_logs_share_few_files() -> None:
    fs = MemoryFileSystem()
    environment = LogEnvironment(fs, open_files_max=4)
    logs = []
    for partition in range(8):
        fs.make_directory(f"/t-{partition}")
        log = open_log(
            environment,
            f"/t-{partition}",
            "t",
            partition,
            CONFIG,
            clean=True,
            checkpoints=Checkpoints(),
            now_ms=NOW_MS,
        )
        logs.append(log)
    for index in range(6):
        for log in logs:
            append(log, batch(b"%04d" % index))
            assert fs.open_files <= 4
    for log in logs:
        assert values_of(log) == [b"%04d" % index for index in range(6)]
        assert fs.open_files <= 4
        log.flush()


class Owner:
    """Something with indexes of a given size."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_loaded = True

    def index_bytes(self) -> int:
        return self.size

    def forget_indexes(self) -> None:
        self.is_loaded = False


def test_the_least_recently_used_indexes_are_forgotten() -> None:
    cache = IndexCache(100)
    owners = [Owner(40) for _ in range(3)]
    cache.touch(owners[0])
    cache.touch(owners[1])
    cache.touch(owners[0])
    cache.touch(owners[2])
    assert [owner.is_loaded for owner in owners] == [True, False, True]
    assert cache.bytes_used == 80
    cache.remove(owners[0])
    cache.remove(owners[0])
    assert cache.bytes_used == 40


def test_one_that_is_larger_than_the_budget_is_kept_alone() -> None:
    cache = IndexCache(100)
    small, large = Owner(10), Owner(500)
    cache.touch(small)
    cache.touch(large)
    assert (small.is_loaded, large.is_loaded) == (False, True)


def test_cold_segments_stay_readable_with_a_tiny_index_budget() -> None:
    fs = MemoryFileSystem()
    fs.make_directory("/t-0")
    environment = LogEnvironment(fs, index_cache_bytes_max=600)
    log = open_log(
        environment,
        "/t-0",
        "t",
        0,
        CONFIG,
        clean=True,
        checkpoints=Checkpoints(),
        now_ms=NOW_MS,
    )
    for index in range(20):
        append(log, batch(b"%04d" % index))
    for _ in range(2):
        for offset in range(20):
            assert len(log.read(offset, 1)) == SIZE
            assert log.offset_for_timestamp(NOW_MS) is not None
            assert environment.index_cache.bytes_used <= 600

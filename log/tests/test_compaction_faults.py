"""Compaction when something comes in between: changes of its log, damage, and the disk."""

import errno
from dataclasses import replace
from uuid import UUID

import pytest

from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.retention import Retention
from klamm.log.tests.compaction import (
    CONFIG,
    cleaner,
    compact,
    records_of,
    run_to_end,
    run_until,
    settle,
    values,
    write,
)
from klamm.log.tests.support import DIRECTORY, NOW_MS, TOPIC, open_one, open_partition
from klamm.log.work import run_inline


@pytest.mark.parametrize("swaps_before", [0, 1, 2])
@pytest.mark.parametrize("what", ["truncate", "delete", "policy", "close"])
def test_a_compaction_ends_when_its_log_changes(what: str, swaps_before: int) -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(24):
        write(log, (b"k%d" % (index % 4), b"%d" % index))
    settle(log)
    expected = {key: value for _, key, value in records_of(log)}
    chosen = cleaner(manager)
    candidate = chosen.choose(manager, NOW_MS)
    assert candidate is not None
    work = chosen.clean(candidate, NOW_MS)
    deleted = manager.environment.deletions
    step = run_until(work, lambda: len(deleted) >= 3 * swaps_before)
    cancellation = log.cleaning
    assert cancellation is not None
    if what == "truncate":
        log.truncate_to(10, NOW_MS)
    elif what == "delete":
        manager.delete_partition(TOPIC, 0)
    elif what == "policy":
        log.update_config(replace(CONFIG, cleanup_policy=frozenset({"delete"})))
    else:
        log.close_files()
    assert cancellation.is_cancelled
    left = [(segment.base_offset, segment.size) for segment in log.segments]
    assert run_to_end(work, step) is None
    assert log.cleaning is None
    assert not log.is_uncleanable
    assert left == [(segment.base_offset, segment.size) for segment in log.segments]
    if what == "delete":
        return
    assert not [name for name in fs.files() if name.endswith((".cleaned", ".swap"))]
    if what == "truncate":
        assert log.log_end_offset == 10
        assert {offset for offset, _ in values(log)} <= set(range(10))
        # What had been swapped before is superseded by what is truncated now.
        assert swaps_before == 2 or values(log)[-1] == (9, b"9")
    else:
        assert {key: value for _, key, value in records_of(log)} == expected


def test_a_log_that_went_offline_is_not_swapped() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(24):
        write(log, (b"k%d" % (index % 4), b"%d" % index))
    settle(log)
    chosen = cleaner(manager)
    candidate = chosen.choose(manager, NOW_MS)
    assert candidate is not None
    work = chosen.clean(candidate, NOW_MS)
    step = run_until(work, lambda: len(manager.environment.deletions) > 0)
    log.is_offline = True
    left = log.segments.base_offsets
    assert run_to_end(work, step) is None
    assert log.segments.base_offsets == left
    assert not log.is_uncleanable


def test_retention_leaves_a_log_alone_that_is_being_compacted() -> None:
    fs = MemoryFileSystem()
    policy = frozenset({"compact", "delete"})
    config = replace(CONFIG, cleanup_policy=policy, retention_bytes=0)
    manager, log = open_one(fs, config)
    write(log, (b"k", b"1"))
    settle(log)
    chosen = cleaner(manager)
    candidate = chosen.choose(manager, NOW_MS)
    assert candidate is not None
    work = chosen.clean(candidate, NOW_MS)
    next(work)
    assert run_inline(Retention(manager).delete_old_segments(log, NOW_MS)).segments == 0
    # Nor is it chosen a second time.
    assert chosen.choose(manager, NOW_MS) is None
    work.close()
    assert log.cleaning is None


def test_a_damaged_log_is_marked_and_the_others_go_on() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    other = manager.open_partition("u", 0, UUID(int=7), CONFIG, NOW_MS)
    for each, count in ((log, 9), (other, 3)):
        for index in range(count):
            write(each, (b"k", b"%d" % index))
        settle(each)
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(fs.files()[path])
    data[100] ^= 1
    fs.overwrite(path, bytes(data))
    while True:
        chosen = cleaner(manager)
        candidate = chosen.choose(manager, NOW_MS)
        if candidate is None:
            break
        run_inline(chosen.clean(candidate, NOW_MS))
    assert log.is_uncleanable
    assert not log.is_offline
    assert not [name for name in fs.files() if name.endswith(".cleaned")]
    assert fs.files()[path] == bytes(data)
    assert values(other) == [(2, b"2")]


def test_a_full_disk_is_tried_again_later() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(9):
        write(log, (b"k%d" % (index % 5), b"%d" % index))
    settle(log)
    expected = {key: value for _, key, value in records_of(log)}
    fs.capacity_bytes = sum(len(data) for data in fs.files().values()) + 150
    assert compact(manager) is None
    assert not log.is_uncleanable
    assert {key: value for _, key, value in records_of(log)} == expected
    assert not [name for name in fs.files() if name.endswith((".cleaned", ".swap"))]
    fs.capacity_bytes = None
    assert compact(manager) is not None
    assert len(values(log)) == 5


def test_another_error_of_the_disk_is_for_the_caller() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(9):
        write(log, (b"k", b"%d" % index))
    settle(log)
    fs.refuse = lambda operation, path: errno.EIO if operation == "datasync" else None
    with pytest.raises(OSError, match="Input/output"):
        compact(manager)
    assert log.cleaning is None
    assert not log.is_offline


def test_a_swap_that_can_not_begin_changes_nothing() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(9):
        write(log, (b"k", b"%d" % index))
    settle(log)
    before = records_of(log)
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "rename" and path.endswith(".timeindex.swap") else None
    )
    assert compact(manager) is None
    assert (log.is_offline, log.is_uncleanable) == (False, False)
    assert records_of(log) == before
    assert not [name for name in fs.files() if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("where", [".log.deleted", ".index.deleted", ".log", ".timeindex"])
def test_a_swap_that_fails_takes_the_log_offline(where: str) -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(9):
        write(log, (b"k%d" % (index % 3), b"%d" % index))
    settle(log)
    expected = {key: value for _, key, value in records_of(log)}
    fs.refuse = lambda operation, path: (
        errno.EIO if operation == "rename" and path.endswith(where) else None
    )
    with pytest.raises(LogError):
        compact(manager)
    assert log.is_offline
    fs.refuse = None
    found = fs.after_kill()
    _, log = open_one(found, CONFIG)
    assert {key: value for _, key, value in records_of(log)} == expected
    assert not [name for name in found.files() if name.endswith((".cleaned", ".swap", ".deleted"))]


def test_leftovers_of_an_earlier_compaction_are_removed_first() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(9):
        write(log, (b"k", b"%d" % index))
    settle(log)
    for name in ("3.log.cleaned", "3.index.cleaned", "0.log.swap"):
        base, _, rest = name.partition(".")
        fs.open(f"{DIRECTORY}/{int(base):020d}.{rest}", create=True)
    begun = len(fs.history)
    assert compact(manager) is not None
    assert values(log) == [(8, b"8")]
    assert not [name for name in fs.files() if name.endswith((".cleaned", ".swap"))]
    # A crash in between must not leave a `.swap` alone, which a start would take for finished.
    removed = [path.rpartition(".")[2] for what, path in fs.history[begun:] if what == "remove"]
    assert removed[:3] == ["swap", "cleaned", "cleaned"]


def test_a_recreated_topic_is_not_touched_by_the_compaction_of_the_deleted_one() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(9):
        write(log, (b"k", b"%d" % index))
    settle(log)
    chosen = cleaner(manager)
    candidate = chosen.choose(manager, NOW_MS)
    assert candidate is not None
    work = chosen.clean(candidate, NOW_MS)
    step = run_until(work, lambda: len(manager.environment.deletions) > 0)
    manager.delete_partition(TOPIC, 0)
    again = open_partition(manager, CONFIG)
    write(again, (b"new", b"new"))
    assert run_to_end(work, step) is None
    assert values(again) == [(0, b"new")]
    assert log.cleaning is None

"""A partition moves to another directory, and the machine stops at every operation of that.

One directory has all that was acknowledged, whatever a crash has done to unsynced bytes and names,
and the start finds it: by where the metadata says that the partition is, and by the names.
"""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

import pytest

from klamm.log.config import LogConfig
from klamm.log.directories import UNASSIGNED
from klamm.log.fs import FileSystem
from klamm.log.log_start import delete_records
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.crashes import every_stop, found_after
from klamm.log.tests.support import TOPIC, append, batch, read_all
from klamm.log.tests.two_directories import (
    FIRST,
    SECOND,
    begin_move,
    by_root,
    end_move,
    open_log,
    open_two,
)
from klamm.log.work import run_inline

# Every append of the story rolls.
CONFIG = LogConfig(segment_bytes=150)
COMPACTED = LogConfig(segment_bytes=150, cleanup_policy=("compact",))


class Story:
    """What was promised when the machine stopped."""

    def __init__(self, assigned: UUID) -> None:
        self.assigned = assigned
        self.written: list[bytes] = []
        self.acknowledged = 0
        self.log_start_offset = 0

    def write(self, log: PartitionLog) -> None:
        value = b"%d" % len(self.written)
        self.written.append(value)
        append(log, batch(value, producer_id=7, producer_epoch=0, sequence=len(self.written) - 1))
        log.advance_high_watermark(log.log_end_offset)

    def sync(self, log: PartitionLog) -> None:
        log.flush()
        self.acknowledged = len(self.written)


def tell(fs: FileSystem, story: Story, config: LogConfig) -> None:
    """Move a partition that is written to before, in the middle and afterwards."""
    directories = open_two(fs)
    log = open_log(directories, config, assigned=story.assigned)
    for _ in range(3):
        story.write(log)
    story.sync(log)
    move = begin_move(directories, log)
    run_inline(move.catch_up())
    # The metadata log is not part of this story: it says the one or the other.
    story.assigned = move.target.directory_id
    story.write(log)
    story.sync(log)
    (start,) = run_inline(delete_records(directories, [(log, 2)])) if config.deletes else (0,)
    assert isinstance(start, int)
    story.log_start_offset = start
    moved = run_inline(move.finish())
    story.write(moved)
    story.sync(moved)
    end_move(directories, move)
    story.write(moved)
    story.sync(moved)


class Stopped(NamedTuple):
    fs: MemoryFileSystem
    story: Story


def prepared() -> tuple[MemoryFileSystem, UUID]:
    fs = MemoryFileSystem()
    directories = open_two(fs)
    home = by_root(directories, FIRST).directory_id
    log = open_log(directories, assigned=home)
    log.flush()
    directories.close()
    return fs, home


def stops(config: LogConfig) -> Iterator[Stopped]:
    """The disk before each operation of the story, and after the last one."""
    fs, home = prepared()
    for stop in every_stop():
        stopped = Stopped(fs.after_kill(), Story(home))
        with stop.on(stopped.fs):
            tell(*stopped, config)
        yield stopped


@pytest.mark.parametrize("config", [CONFIG, COMPACTED], ids=["deleted", "compacted"])
def test_one_good_copy_is_left_at_every_point(config: LogConfig) -> None:
    roots = set()
    count = 0
    for stopped in stops(config):
        count += 1
        for fs in found_after(stopped.fs):
            roots.add(check(fs, stopped.story, config))
        move_again(stopped.fs.after_kill(), stopped.story, config)
    # Both outcomes were seen.
    assert roots == {FIRST, SECOND}
    assert count > 50


def check(fs: MemoryFileSystem, story: Story, config: LogConfig) -> str:
    directories = open_two(fs)
    log = open_log(directories, config, assigned=story.assigned)
    assert log.log_start_offset >= story.log_start_offset
    found = read_all(log, max_bytes=1000)
    assert all(story.written[offset] == value for offset, value in found)
    offsets = {offset for offset, _ in found}
    assert offsets >= set(range(log.log_start_offset, story.acknowledged))
    assert 7 in log.producers.entries or not story.acknowledged
    # There is no second copy that a later start could take for the right one.
    assert [one.root for one in directories.online if one.has(TOPIC, 0)] == [log.root]
    return log.root


def move_again(fs: MemoryFileSystem, story: Story, config: LogConfig) -> None:
    """An unfinished copy goes, and the move begins anew."""
    directories = open_two(fs)
    log = open_log(directories, config, assigned=story.assigned)
    log.advance_high_watermark(log.log_end_offset)
    before = read_all(log, max_bytes=1000)
    source, target = directories.online
    if log.root != source.root:
        source, target = target, source
    for directory in directories.online:
        directory.take_unfinished()
    move = begin_move(directories, log, target.root)
    run_inline(move.catch_up())
    moved = run_inline(move.finish())
    end_move(directories, move)
    assert read_all(moved, max_bytes=1000) == before
    left = [name for name in fs.list_directories(source.root) if name.startswith(f"{TOPIC}-")]
    assert all(name.endswith("-stray") for name in left)
    directories.close()
    again = open_log(open_two(fs), config, assigned=target.directory_id)
    assert again.root == target.root
    assert read_all(again, max_bytes=1000) == before


def test_a_log_that_grows_all_the_time_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that the copy was synced, something more has been written."""
    fs = MemoryFileSystem()
    directories = open_two(fs)
    log = open_log(directories, CONFIG, assigned=by_root(directories, FIRST).directory_id)
    story = Story(UNASSIGNED)
    story.write(log)
    move = begin_move(directories, log)
    run_inline(move.catch_up())
    write_out = PartitionLog.write_out
    rounds = 0

    def grow(copy: PartitionLog) -> None:
        nonlocal rounds
        write_out(copy)
        rounds += 1
        if rounds <= 5:
            story.write(log)

    monkeypatch.setattr(PartitionLog, "write_out", grow)
    moved = run_inline(move.finish())
    assert rounds == 6
    assert [record.value for record in read_all(moved)] == story.written
    assert moved.recovery_point == moved.log_end_offset

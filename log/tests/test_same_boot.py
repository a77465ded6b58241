"""After a kill nothing that was written is gone, so what is bad is damage, and is never cut.

A power cut, as opposed to that, may leave anything above the recovery point: test_torn_tail.py.
"""

import dataclasses
import errno

import pytest

from klamm.log import batch_search
from klamm.log import fs as os_fs
from klamm.log.config import LogConfig
from klamm.log.errors import CorruptFileError, CorruptLogError
from klamm.log.fs import OsFileSystem
from klamm.log.layout import BOOT_FILE
from klamm.log.memory_fs import MemoryFileSystem, keep_bytes, keep_names, lose_bytes, lose_names
from klamm.log.tests.crashes import every_stop
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    OTHER_TOPIC_ID,
    ROOT,
    TOPIC,
    TOPIC_ID,
    Read,
    append,
    batch,
    open_manager,
    open_one,
    open_partition,
    read_all,
    values_of,
)
from klamm.wire.records.batch import read_batch_header, with_offset_and_epoch

VALUES = [b"%04d" % index for index in range(8)]
SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=50)
FIRST = f"{DIRECTORY}/00000000000000000000.log"
LAST = f"{DIRECTORY}/00000000000000000004.log"
EXPECTED = [Read(offset, value) for offset, value in enumerate(VALUES)]
BOOT = f"{ROOT}/{BOOT_FILE}"
EPOCH_BYTES = range(12, 16)


def killed_log() -> MemoryFileSystem:
    """Two full segments; all is synced and acknowledged, and no checkpoint says so yet."""
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for value in VALUES:
        append(log, batch(value))
    log.flush()
    return fs.after_kill()


def with_bytes(fs: MemoryFileSystem, path: str, data: bytes) -> MemoryFileSystem:
    """Return the disk with other bytes in a file, in the same boot."""
    changed = fs.after_kill()
    changed.overwrite(path, data)
    return changed


def flipped(fs: MemoryFileSystem, path: str, position: int, bits: int) -> MemoryFileSystem:
    data = bytearray(fs.files()[path])
    data[position] ^= bits
    return with_bytes(fs, path, bytes(data))


def power_cut(fs: MemoryFileSystem) -> MemoryFileSystem:
    return fs.after_crash(keep_bytes, keep_names)


# --- damage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0x01, 0x80])
@pytest.mark.parametrize("path", [FIRST, LAST])
def test_a_flip_anywhere_is_named_and_nothing_is_dropped(path: str, bits: int) -> None:
    fs = killed_log()
    for position in range(4 * SIZE):
        damaged = flipped(fs, path, position, bits)
        before = damaged.files()[path]
        if position % SIZE in EPOCH_BYTES:
            # No acknowledged record is missing: the epoch is outside of the checksum.
            assert read_all(open_one(damaged, CONFIG)[1]) == EXPECTED
            continue
        with pytest.raises(CorruptLogError) as raised:
            open_one(damaged, CONFIG)
        error = raised.value
        number = position // SIZE
        # A batch whose offset has grown is noticed at the one behind it, or at the segment's end.
        assert error.file == path
        assert error.position in (number * SIZE, (number + 1) * SIZE)
        assert damaged.files()[path] == before


@pytest.mark.parametrize("number", range(4))
def test_every_bit_of_a_length(number: int) -> None:
    fs = killed_log()
    for bit in range(32):
        damaged = flipped(fs, LAST, number * SIZE + 8 + bit // 8, 1 << bit % 8)
        with pytest.raises(CorruptLogError, match=f"byte {number * SIZE} .offset {number + 4}."):
            open_one(damaged, CONFIG)


def test_a_length_beside_other_damage_is_found_by_what_lies_behind() -> None:
    fs = killed_log()
    for number in range(3):
        damaged = flipped(fs, LAST, number * SIZE + 8, 0x01)
        damaged = flipped(damaged, LAST, number * SIZE + 70, 0x01)
        with pytest.raises(CorruptLogError, match=f"byte {number * SIZE} "):
            open_one(damaged, CONFIG)


def test_zeros_are_damage_because_no_file_grows_but_by_what_is_written() -> None:
    fs = killed_log()
    whole = fs.files()[LAST]
    for size in range(3 * SIZE, 4 * SIZE):
        if not whole[size:].strip(b"\0"):
            continue
        with pytest.raises(CorruptLogError, match=f"byte {3 * SIZE} "):
            open_one(with_bytes(fs, LAST, whole[:size] + bytes(4 * SIZE - size)), CONFIG)


def test_a_segment_without_its_end_is_damage() -> None:
    fs = killed_log()
    whole = fs.files()[FIRST]
    for size in range(4 * SIZE):
        with pytest.raises(CorruptLogError) as raised:
            open_one(with_bytes(fs, FIRST, whole[:size]), CONFIG)
        assert (raised.value.offset, raised.value.position) == (size // SIZE, size // SIZE * SIZE)


def test_damage_is_remembered_over_a_power_cut_until_it_is_repaired() -> None:
    fs = killed_log()
    for position in range(4 * SIZE):
        if position % SIZE in EPOCH_BYTES:
            continue
        damaged = flipped(fs, LAST, position, 0x01)
        with pytest.raises(CorruptLogError) as first:
            open_one(damaged, CONFIG)
        for surviving in ((lose_bytes, lose_names), (keep_bytes, keep_names)):
            later = damaged.after_crash(*surviving)
            with pytest.raises(CorruptLogError) as again:
                open_one(later, CONFIG)
            assert str(again.value) == str(first.value)
            assert read_all(open_one(flipped(later, LAST, position, 0x01), CONFIG)[1]) == EXPECTED


def test_an_offset_that_has_grown_in_a_compacted_log_is_remembered_and_can_be_repaired() -> None:
    config = dataclasses.replace(CONFIG, cleanup_policy=frozenset({"compact"}))
    fs = killed_log()
    # Far above the log's end: the batch behind it is the one that does not fit.
    damaged = flipped(fs, LAST, 2 * SIZE + 5, 0x01)
    for _ in range(3):
        with pytest.raises(CorruptLogError, match=f"byte {3 * SIZE} "):
            open_one(damaged, config)
        damaged = power_cut(damaged)
    assert read_all(open_one(flipped(damaged, LAST, 2 * SIZE + 5, 0x01), config)[1]) == EXPECTED


def test_what_was_not_synced_beside_damage_is_synced_before_it_counts_as_such() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, CONFIG)
    for value in VALUES:
        append(log, batch(value))
    killed = fs.after_kill()
    file = killed.open(LAST)
    whole = killed.files()[LAST]
    file.truncate(2 * SIZE)
    file.append([b"damaged", whole[2 * SIZE + 7 :]], 2 * SIZE)
    with pytest.raises(CorruptLogError, match=f"byte {2 * SIZE} .offset 6."):
        open_one(killed, CONFIG)
    later = killed.after_crash(lose_bytes, lose_names)
    assert later.files()[LAST] == killed.files()[LAST]
    assert read_all(open_one(with_bytes(later, LAST, whole), CONFIG)[1]) == EXPECTED


# --- what a kill leaves ----------------------------------------------------------------------


def test_a_tail_torn_at_any_byte_is_cut() -> None:
    fs = killed_log()
    whole = fs.files()[LAST]
    for size in range(4 * SIZE):
        torn = with_bytes(fs, LAST, whole[:size])
        _, log = open_one(torn, CONFIG)
        assert values_of(log) == VALUES[: 4 + size // SIZE]
        assert torn.size(LAST) == size // SIZE * SIZE
        assert append(log, batch(b"next")) == 4 + size // SIZE
        assert values_of(open_one(torn.after_kill(), CONFIG)[1])[-1] == b"next"


def torn_behind(record: bytes) -> MemoryFileSystem:
    """A log of four batches whose last write, of this record, was cut short at its last byte."""
    config = LogConfig()
    fs = MemoryFileSystem()
    _, log = open_one(fs, config)
    for value in VALUES[:4]:
        append(log, batch(value))
    append(log, batch(record))
    killed = fs.after_kill()
    killed.overwrite(FIRST, killed.files()[FIRST][:-1])
    return killed


def test_a_record_that_holds_older_batches_is_no_batch() -> None:
    older = killed_log().files()[FIRST]
    fs = torn_behind(older)
    assert values_of(open_one(fs)[1]) == VALUES[:4]


def test_a_record_that_holds_what_could_follow_is_left_for_somebody_to_look_at() -> None:
    copied = batch(b"copied")
    prefix = with_offset_and_epoch(read_batch_header(copied), 5, 0)
    fs = torn_behind(prefix + copied[len(prefix) :])
    with pytest.raises(CorruptLogError, match=f"byte {4 * SIZE} .offset 4."):
        open_one(fs)


def test_a_search_that_costs_too_much_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    header = read_batch_header(batch(bytes(2000)))
    fake = with_offset_and_epoch(header, 5, 0) + batch(bytes(2000))[16:61]
    fs = torn_behind(fake * 200 + bytes(2000))
    assert values_of(open_one(fs.after_kill())[1]) == VALUES[:4]
    monkeypatch.setattr(batch_search, "SEARCH_BYTES_MAX", 100_000)
    with pytest.raises(CorruptLogError):
        open_one(fs.after_kill())


def test_batches_are_found_on_the_edge_of_what_is_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fs = killed_log()
    damaged = flipped(flipped(fs, LAST, 8, 0x01), LAST, 70, 0x01)
    for window in range(61, 2 * SIZE):
        monkeypatch.setattr(batch_search, "WINDOW_BYTES", window)
        with pytest.raises(CorruptLogError):
            open_one(damaged.after_kill(), CONFIG)


# --- after a power cut -----------------------------------------------------------------------


def test_what_is_dropped_after_a_power_cut_is_named(caplog: pytest.LogCaptureFixture) -> None:
    for path, position, count, first in ((FIRST, SIZE + 70, 6, 2), (LAST, 70, 3, 5)):
        caplog.clear()
        _, log = open_one(power_cut(flipped(killed_log(), path, position, 0x01)), CONFIG)
        assert log.log_end_offset == first - 1
        (line,) = [one.getMessage() for one in caplog.records if "cut at byte" in one.msg]
        assert path in line
        assert f"; {count} whole batches with offsets from {first} to 7 are dropped" in line


def test_nothing_is_said_of_a_tail_that_held_nothing(caplog: pytest.LogCaptureFixture) -> None:
    fs = killed_log()
    for found in (fs, power_cut(fs)):
        caplog.clear()
        open_one(with_bytes(found, LAST, fs.files()[LAST][:-1]), CONFIG)
        (line,) = [one.getMessage() for one in caplog.records if "cut at byte" in one.msg]
        assert line.endswith("0 later segments removed")


def test_a_kill_in_the_middle_of_recovery_from_a_power_cut() -> None:
    torn = power_cut(flipped(killed_log(), LAST, SIZE + 70, 0x01))
    for stop in every_stop():
        fs = torn.after_kill()
        with stop.on(fs):
            open_one(fs, CONFIG)
        again = fs.after_kill()
        with stop.on(again):
            open_one(again, CONFIG)
        _, log = open_one(again.after_kill(), CONFIG)
        assert values_of(log) == VALUES[:5]


def test_a_kill_before_the_last_partition_is_recovered_from_a_power_cut() -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    for topic, topic_id in (("other", OTHER_TOPIC_ID), (TOPIC, TOPIC_ID)):
        log = manager.open_partition(topic, 0, topic_id, CONFIG, NOW_MS)
        for value in VALUES:
            append(log, batch(value))
        log.flush()
    manager.note_boot()
    torn = power_cut(flipped(fs, LAST, 70, 0x01))
    manager = open_manager(torn)
    manager.open_partition("other", 0, OTHER_TOPIC_ID, CONFIG, NOW_MS)
    # Killed here, and started again.
    _, log = open_one(torn.after_kill(), CONFIG)
    assert values_of(log) == VALUES[:4]


# --- the file --------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"\n", b"boot-", b"another\n", b"\xff\n"])
def test_without_the_id_of_this_boot_the_system_may_have_restarted(content: bytes) -> None:
    damaged = flipped(killed_log(), LAST, 70, 0x01)
    damaged.overwrite(BOOT, content)
    assert values_of(open_one(damaged, CONFIG)[1]) == VALUES[:4]


def test_so_it_may_without_the_file_or_when_it_can_not_be_read() -> None:
    damaged = flipped(killed_log(), LAST, 70, 0x01)
    missing, refused = damaged.after_kill(), damaged.after_kill()
    missing.remove(BOOT)
    refused.refuse = lambda operation, path: errno.EIO if path == BOOT else None
    for fs in (missing, refused):
        assert values_of(open_one(fs, CONFIG)[1]) == VALUES[:4]


def test_a_system_that_has_no_id_may_always_have_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "boot_id", lambda self: "")
    fs = killed_log()
    assert not fs.exists(BOOT)
    fs.open(BOOT, create=True).append([b"\n"], 1)
    damaged = flipped(fs, LAST, 70, 0x01)
    assert values_of(open_one(damaged, CONFIG)[1]) == VALUES[:4]


def test_the_id_is_there_from_the_end_of_a_start_to_a_clean_stop() -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    open_partition(manager, CONFIG)
    assert not fs.exists(BOOT)
    manager.note_boot()
    assert fs.files()[BOOT] == f"{fs.boot_id()}\n".encode()
    manager.close()
    assert fs.files()[BOOT] == b""


def test_the_id_goes_when_a_sync_fails_because_the_kernel_may_drop_what_it_could_not_write() -> (
    None
):
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    append(log, batch(b"0000"))
    fs.refuse = lambda operation, path: (
        errno.EIO if operation == "datasync" and path == FIRST else None
    )
    with pytest.raises(OSError, match="Input/output error"):
        manager.close()
    assert fs.files()[BOOT] == b""


def test_no_boot_is_named_while_a_log_could_not_be_looked_at() -> None:
    torn = power_cut(flipped(killed_log(), LAST, 70, 0x01))
    checkpoint = f"{DIRECTORY}/leader-epoch-checkpoint"
    epochs = torn.files()[checkpoint]
    torn.overwrite(checkpoint, b"damaged")
    manager = open_manager(torn)
    with pytest.raises(CorruptFileError):
        open_partition(manager, CONFIG)
    manager.note_boot()
    torn.overwrite(checkpoint, epochs)
    # The damaged file hid that the power cut has torn the log, too.
    _, log = open_one(torn.after_kill(), CONFIG)
    assert values_of(log) == VALUES[:4]


def test_a_damaged_log_is_named_until_it_is_opened_or_gone() -> None:
    fs = flipped(killed_log(), LAST, 70, 0x01)
    boots = []
    for _ in range(3):
        manager = open_manager(fs)
        with pytest.raises(CorruptLogError):
            open_partition(manager, CONFIG)
        manager.note_boot()
        manager.close()
        boots.append(fs.files()[BOOT])
        assert boots[-1] == f"{fs.boot_id()}\n{TOPIC}-0\n".encode()
        fs = power_cut(fs)
    assert len(set(boots)) == 3
    repaired = flipped(fs, LAST, 70, 0x01)
    open_one(repaired, CONFIG)
    assert repaired.files()[BOOT] == f"{fs.boot_id()}\n".encode()
    manager = open_manager(fs)
    with pytest.raises(CorruptLogError):
        open_partition(manager, CONFIG)
    manager.delete_partition(TOPIC, 0)
    manager.remove_deleted()
    assert TOPIC.encode() not in fs.files()[BOOT].splitlines()
    manager.close()
    # A topic of the same name is another one.
    torn = power_cut(fs)
    _, log = open_one(torn, CONFIG)
    append(log, batch(b"0000"))
    append(log, batch(b"0001"))
    torn = power_cut(flipped(torn, FIRST, 70, 0x01))
    assert values_of(open_one(torn, CONFIG)[1]) == []


def test_whoever_removes_the_file_decides_for_the_cut() -> None:
    fs = flipped(killed_log(), LAST, 70, 0x01)
    with pytest.raises(CorruptLogError):
        open_one(fs, CONFIG)
    fs.remove(BOOT)
    assert values_of(open_one(fs.after_kill(), CONFIG)[1]) == VALUES[:4]


def test_a_disk_that_has_no_room_for_it_is_no_reason_not_to_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = MemoryFileSystem()
    fs.refuse = lambda operation, path: (
        errno.ENOSPC if operation == "append" and path.startswith(BOOT) else None
    )
    _, log = open_one(fs, CONFIG)
    append(log, batch(b"0000"))
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith("the next start may not tell damage from a crash: ")


def test_the_id_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    found = OsFileSystem().boot_id()
    assert len(found) == 36
    assert found == OsFileSystem().boot_id()
    monkeypatch.setattr(os_fs, "BOOT_ID_PATH", "/nowhere")
    assert OsFileSystem().boot_id() == ""


def test_a_boot_in_memory_ends_with_a_power_cut_and_not_with_a_kill() -> None:
    fs = MemoryFileSystem()
    assert fs.after_kill().boot_id() == fs.boot_id()
    assert len({fs.boot_id(), fs.after_crash().boot_id(), power_cut(fs).boot_id()}) == 3

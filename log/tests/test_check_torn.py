"""Tails torn at every byte: a note above the recovery point, a fault below it."""

from klamm.log.check.findings import Finding
from klamm.log.config import LogConfig
from klamm.log.errors import CorruptLogError
from klamm.log.memory_fs import MemoryFileSystem, keep_bytes, keep_names
from klamm.log.tests.checking import KnownPartitions, check
from klamm.log.tests.support import DIRECTORY, append, batch, open_one

CONFIG = LogConfig(index_interval_bytes=100)
LOG_PATH = f"{DIRECTORY}/00000000000000000000.log"
SIZE = len(batch(b"0000"))
SYNCED = 3
WRITTEN = 6


def killed_log() -> tuple[MemoryFileSystem, KnownPartitions]:
    """Three batches below the recovery point, and three above it."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for index in range(WRITTEN):
        append(log, batch(b"%04d" % index))
        if index + 1 == SYNCED:
            log.flush()
            manager.write_checkpoints()
    return fs.after_kill(), KnownPartitions(manager.directory_id)


def of_the_segment(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.path == LOG_PATH]


def test_a_tail_torn_at_any_byte() -> None:
    fs, known = killed_log()
    whole = fs.files()[LOG_PATH]
    for size in range(len(whole) + 1):
        fs.overwrite(LOG_PATH, whole[:size])
        found = of_the_segment(check(fs, known))
        offset = size // SIZE
        if size % SIZE == 0 and offset >= SYNCED:
            assert found == []
            continue
        if offset >= SYNCED:
            (finding,) = found
            assert finding.is_note
            assert "recovery will cut here" in finding.what
        else:
            finding = found[-1]
            assert not finding.is_note
        assert finding.offset == offset
        assert finding.position in (offset * SIZE, size)


def test_zeros_in_place_of_a_tail_after_a_power_cut() -> None:
    killed, known = killed_log()
    fs = killed.after_crash(keep_bytes, keep_names)
    whole = fs.files()[LOG_PATH]
    for size in range(SIZE, len(whole)):
        fs.overwrite(LOG_PATH, whole[:size] + bytes(len(whole) - size))
        found = of_the_segment(check(fs, known))
        # A batch that ends in zeros is whole all the same.
        while size < len(whole) and whole[size] == 0:
            size += 1
        offset = size // SIZE
        if size == len(whole):
            assert found == []
        elif offset >= SYNCED:
            assert [(f.is_note, f.offset, f.position) for f in found] == [
                (True, offset, offset * SIZE)
            ]
        else:
            assert (found[0].is_note, found[0].offset) == (False, offset)
            assert found[0].position == offset * SIZE


def test_damage_above_the_recovery_point_is_where_recovery_cuts_after_a_power_cut() -> None:
    killed, known = killed_log()
    fs = killed.after_crash(keep_bytes, keep_names)
    whole = fs.files()[LOG_PATH]
    for position in range(SYNCED * SIZE, len(whole)):
        if position % SIZE in range(12, 16):
            # Recovery does not compare the leader epoch there, either.
            continue
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        fs.overwrite(LOG_PATH, bytes(damaged))
        (noted,) = of_the_segment(check(fs, known))
        assert noted.is_note
        recovered = fs.after_kill()
        _, log = open_one(recovered, CONFIG)
        assert log.log_end_offset == noted.offset
        assert recovered.size(LOG_PATH) == noted.position
        log.flush()
        assert check(recovered, known) == []


def judged_by_recovery(fs: MemoryFileSystem) -> tuple[bool, int, int]:
    """Whether recovery cuts, and at which offset and byte it does so or refuses the log."""
    recovered = fs.after_kill()
    try:
        _, log = open_one(recovered, CONFIG)
    except CorruptLogError as error:
        return error.file != LOG_PATH, error.offset, error.position
    return True, log.log_end_offset, recovered.size(LOG_PATH)


def test_after_a_kill_damage_above_the_recovery_point_is_a_fault_where_recovery_refuses() -> None:
    fs, known = killed_log()
    whole = fs.files()[LOG_PATH]
    for position in range(SYNCED * SIZE, len(whole)):
        if position % SIZE in range(12, 16):
            continue
        for bits in (0x01, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bits
            fs.overwrite(LOG_PATH, bytes(damaged))
            (first,) = of_the_segment(check(fs, known))
            assert "the partition will be offline" in first.what
            assert (first.is_note, first.offset, first.position) == judged_by_recovery(fs)


def test_after_a_kill_a_torn_tail_is_a_note_where_recovery_cuts() -> None:
    fs, known = killed_log()
    whole = fs.files()[LOG_PATH]
    for size in range(SYNCED * SIZE, len(whole)):
        fs.overwrite(LOG_PATH, whole[:size])
        found = of_the_segment(check(fs, known))
        is_cut, offset, position = judged_by_recovery(fs)
        assert is_cut
        expected = [(True, offset, position)] if size % SIZE else []
        assert [(one.is_note, one.offset, one.position) for one in found] == expected


def test_zeros_in_place_of_a_tail_after_a_kill() -> None:
    fs, known = killed_log()
    whole = fs.files()[LOG_PATH]
    for size in range(SYNCED * SIZE, len(whole)):
        fs.overwrite(LOG_PATH, whole[:size] + bytes(len(whole) - size))
        found = of_the_segment(check(fs, known))
        if whole[size:].strip(b"\0"):
            first = found[0]
            assert (first.is_note, first.offset, first.position) == judged_by_recovery(fs)
        else:
            assert found == []


def test_a_segment_that_lost_its_end_before_the_next_one() -> None:
    config = LogConfig(segment_bytes=3 * SIZE)
    fs = MemoryFileSystem()
    manager, log = open_one(fs, config)
    for index in range(7):
        append(log, batch(b"%04d" % index))
    known = KnownPartitions(manager.directory_id)
    crashed = fs.after_crash(keep_bytes, keep_names)
    crashed.overwrite(LOG_PATH, crashed.files()[LOG_PATH][: 2 * SIZE])
    (noted,) = of_the_segment(check(crashed, known))
    assert str(noted) == (
        f"{LOG_PATH}: offset 2, byte {2 * SIZE}: note: recovery will cut here and drop 2 segments:"
        " the next one begins with offset 3, 2 was due"
    )
    killed = fs.after_kill()
    killed.overwrite(LOG_PATH, killed.files()[LOG_PATH][: 2 * SIZE])
    (fault,) = of_the_segment(check(killed, known))
    assert str(fault) == (
        f"{LOG_PATH}: offset 2, byte {2 * SIZE}: no killed process leaves this, so the partition"
        " will be offline: the next one begins with offset 3, 2 was due"
    )
    assert judged_by_recovery(killed) == (False, 2, 2 * SIZE)

"""What the checker says about things that are not as they should be."""

import errno

import pytest

from klamm.log.check.directory import check_directories
from klamm.log.check.findings import FINDINGS_PER_FILE_MAX, Finding, Findings
from klamm.log.check.formats import Malformed
from klamm.log.check.text_files import kafka_uuid, property_lines
from klamm.log.config import LogConfig
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.checking import (
    COMPACTED,
    CONFIG,
    KnownPartitions,
    check,
    put,
    written_directory,
)
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    OTHER_TOPIC_ID,
    ROOT,
    TOPIC,
    append,
    batch,
    open_manager,
    open_one,
)
from klamm.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    encode_batch_header,
    read_batch_header,
)
from klamm.wire.records.codecs import Codec, compress
from klamm.wire.records.record import DECOMPRESSED_BYTES_MAX

FIRST_LOG = f"{DIRECTORY}/00000000000000000000.log"
BATCH_SIZE = len(batch(b"0000"))


def plain_log(*, count: int = 4, clean: bool = True) -> tuple[MemoryFileSystem, KnownPartitions]:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for number in range(count):
        append(log, batch(b"%04d" % number))
    log.advance_high_watermark(count)
    log.flush()
    if clean:
        manager.close()
    else:
        manager.write_checkpoints()
    return fs.after_kill(), KnownPartitions(manager.directory_id)


def lines(findings: list[Finding]) -> list[str]:
    return [str(finding) for finding in findings]


# --- findings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (Finding("a/b.log", "wrong", 7, 146), "a/b.log: offset 7, byte 146: wrong"),
        (Finding("a/b.log", "wrong", position=0), "a/b.log: byte 0: wrong"),
        (Finding("a", "odd", is_note=True), "a: note: odd"),
    ],
)
def test_a_finding_is_a_line(finding: Finding, line: str) -> None:
    assert str(finding) == line


def test_a_file_is_named_only_so_often() -> None:
    found: list[Finding] = []
    findings = Findings(found.append)
    for position in range(FINDINGS_PER_FILE_MAX + 7):
        findings.fault("file", "wrong", position=position)
    findings.fault("other", "wrong")
    findings.close()
    assert len(found) == FINDINGS_PER_FILE_MAX + 2
    assert str(found[-1]) == "file: 7 more of this file"
    assert findings.faults == FINDINGS_PER_FILE_MAX + 8


# --- segments ------------------------------------------------------------------------------------


def test_damage_does_not_hide_what_lies_behind_it() -> None:
    fs, known = plain_log()
    data = bytearray(fs.files()[FIRST_LOG])
    data[70] ^= 1
    data[2 * BATCH_SIZE + 8 : 2 * BATCH_SIZE + 12] = b"\x7f\xff\xff\xff"
    fs.overwrite(FIRST_LOG, bytes(data))
    found = [finding for finding in check(fs, known) if finding.path == FIRST_LOG]
    assert [(finding.offset, finding.position) for finding in found] == [
        (0, 0),
        (2, 2 * BATCH_SIZE),
    ]
    assert "the checksum is" in found[0].what
    assert "the file ends after" in found[1].what


def test_a_batch_that_stands_twice() -> None:
    """What a broker would write that has lost its producers."""
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    records = batch(b"a", b"b", producer_id=5, producer_epoch=0, sequence=0)
    append(log, records)
    log.producers.clear()
    append(log, records)
    log.advance_high_watermark(4)
    manager.close()
    assert lines(check(fs, KnownPartitions(manager.directory_id))) == [
        f"{FIRST_LOG}: offset 2, byte {len(records)}: producer 5 sent sequences up to 1 once,"
        " they are stored twice: also at offset 0"
    ]


def test_a_log_that_begins_within_the_only_batch_of_its_epoch() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, CONFIG)
    for epoch in range(3):
        log.append(batch(b"a", b"b", b"c"), leader_epoch=epoch, now_ms=NOW_MS)
    log.advance_high_watermark(9)
    log.increment_log_start_offset(4)
    manager.close()
    assert check(fs, KnownPartitions(manager.directory_id)) == []


def test_records_that_are_not_records() -> None:
    fs, known = plain_log(count=1)
    data = fs.files()[FIRST_LOG]
    header = read_batch_header(data)
    garbage = bytes(len(data) - 61)
    fs.overwrite(FIRST_LOG, encode_batch_header(header, garbage) + garbage)
    (found,) = check(fs, known)
    assert (found.path, found.offset, found.position) == (FIRST_LOG, 0, 0)
    assert found.what.startswith("the records can't be opened: ")


def test_records_that_expand_without_end() -> None:
    fs, known = plain_log(count=1)
    header = read_batch_header(fs.files()[FIRST_LOG])
    bomb = compress(Codec.ZSTD, bytes(DECOMPRESSED_BYTES_MAX + 1))
    header = header._replace(attributes=Codec.ZSTD)
    fs.overwrite(FIRST_LOG, encode_batch_header(header, bomb) + bomb)
    (found,) = check(fs, known)
    assert f"expands to more than {DECOMPRESSED_BYTES_MAX} bytes" in found.what


def test_an_unknown_codec() -> None:
    fs, known = plain_log(count=1)
    data = fs.files()[FIRST_LOG]
    header = read_batch_header(data)._replace(attributes=7)
    records = data[61:]
    fs.overwrite(FIRST_LOG, encode_batch_header(header, records) + records)
    assert lines(check(fs, known)) == [f"{FIRST_LOG}: offset 0, byte 0: codec 7 is unknown"]
    assert fs.files()[FIRST_LOG][ATTRIBUTES_OFFSET + 1] == 7


def test_missing_offsets_are_a_fault_unless_the_topic_is_compacted() -> None:
    fs, known = written_directory(clean=True)
    assert check(fs, known) == []
    # Nobody says which topics are compacted.
    (noted,) = check(fs)
    assert noted.is_note
    assert noted.path == f"{ROOT}/{COMPACTED}-0/00000000000000000000.log"
    assert "offsets 0 to 499 are missing and " in noted.what
    fs, known = plain_log()
    data = fs.files()[FIRST_LOG]
    fs.overwrite(FIRST_LOG, data[:BATCH_SIZE] + data[2 * BATCH_SIZE :])
    found = [str(finding) for finding in check(fs, known) if finding.path == FIRST_LOG]
    assert found == [f"{FIRST_LOG}: offset 2, byte {BATCH_SIZE}: offsets 1 to 1 are missing"]


def test_a_log_that_ends_before_what_was_synced() -> None:
    fs, known = plain_log(clean=False)
    fs.overwrite(FIRST_LOG, fs.files()[FIRST_LOG][: 3 * BATCH_SIZE])
    assert lines(check(fs, known)) == [
        f"{FIRST_LOG}: offset 3, byte {3 * BATCH_SIZE}: the log ends here, but"
        f" {ROOT}/recovery-point-offset-checkpoint has 4"
    ]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index(suffix: str) -> None:
    fs, known = plain_log()
    path = f"{DIRECTORY}/00000000000000000000{suffix}"
    fs.remove(path)
    assert lines(check(fs, known)) == [f"{path}: is missing"]


def test_an_aborted_transaction_that_the_index_does_not_have() -> None:
    fs, known = written_directory(clean=True, compacted=False)
    path = next(path for path in fs.files() if path.endswith(".txnindex"))
    fs.remove(path)
    (found, *_) = check(fs, known)
    assert found.path == path
    assert found.what.startswith("the transaction of producer 9 from offset ")
    assert found.what.endswith(" on, which was aborted here, is missing")


def test_a_file_that_the_disk_refuses() -> None:
    fs, known = plain_log()
    fs.refuse = lambda operation, path: (
        errno.EIO if operation == "pread" and path == FIRST_LOG else None
    )
    assert f"{FIRST_LOG}: Input/output error" in lines(check(fs, known))


# --- directories ---------------------------------------------------------------------------------


def test_leftovers_are_notes() -> None:
    fs, known = plain_log()
    for name in ("00000000000000000000.log.deleted", "00000000000000000000.snapshot.deleted"):
        put(fs, f"{DIRECTORY}/{name}", b"whatever")
    put(fs, f"{DIRECTORY}/00000000000000000000.log.cleaned", b"whatever")
    put(fs, f"{DIRECTORY}/leader-epoch-checkpoint.tmp", b"0\n")
    put(fs, f"{DIRECTORY}/00000000000000000009.index", b"")
    put(fs, f"{DIRECTORY}/notes.txt", b"")
    put(fs, f"{ROOT}/shopping-list", b"milk")
    fs.make_directory(f"{ROOT}/{TOPIC}-0.0123-delete")
    fs.make_directory(f"{ROOT}/holidays")
    assert sorted(lines(check(fs, known))) == [
        f"{ROOT}/holidays: note: not a partition",
        f"{ROOT}/shopping-list: note: not a file of a data directory",
        f"{DIRECTORY}.0123-delete: note: a deleted partition; the next start removes it",
        f"{DIRECTORY}/00000000000000000009.index: note: an index without its segment",
        f"{DIRECTORY}/leader-epoch-checkpoint.tmp: note: left over from a file that was being"
        " replaced",
        f"{DIRECTORY}/notes.txt: note: not a file of a partition",
        f"{DIRECTORY}: note: 1 files .cleaned, left over from a compaction; the next start"
        " clears them",
        f"{DIRECTORY}: note: 2 files .deleted, left over from a deletion; the next start"
        " clears them",
    ]


def test_a_compaction_between_its_renames() -> None:
    """A finished output has not got its name yet, and what it replaces is there or gone."""
    config = LogConfig(segment_bytes=200, index_interval_bytes=100)
    fs, known = written_directory(clean=False, config=config)
    folder = f"{ROOT}/{COMPACTED}-0"
    first = f"{folder}/00000000000000000000"
    for suffix in (".log", ".index", ".timeindex"):
        put(fs, f"{first}{suffix}.swap", fs.files()[first + suffix])
    noted = (
        f"{folder}: note: 3 files .swap, left over from a compaction; the next start clears them"
    )
    assert lines(check(fs, known)) == [noted]
    for suffix in (".log", ".index", ".timeindex"):
        fs.remove(first + suffix)
    assert lines(check(fs, known)) == [noted]


@pytest.mark.parametrize("clean", [True, False])
def test_a_partition_that_no_topic_owns(clean: bool) -> None:
    fs, known = plain_log(clean=clean)
    fs.rename(DIRECTORY, f"{ROOT}/other-0")
    found = {finding.path: finding for finding in check(fs, known)}
    stray, missing = found[f"{ROOT}/other-0"], found[DIRECTORY]
    assert stray.is_note == (not clean)
    # Its recovery point says that it was synced.
    assert not missing.is_note
    assert stray.what.startswith("the metadata log has no such partition")
    assert missing.what.startswith("is missing, the metadata log has it")


@pytest.mark.parametrize("clean", [True, False])
def test_a_partition_of_another_topic_id(clean: bool) -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    log = manager.open_partition(TOPIC, 0, OTHER_TOPIC_ID, CONFIG, NOW_MS)
    log.flush()
    if clean:
        manager.close()
    (found,) = check(fs, KnownPartitions(manager.directory_id))
    assert found.path == f"{DIRECTORY}/partition.metadata"
    assert found.what.startswith("topic id _-7dzLuqmYh3ZlVEMyIRAA, the metadata log has ")
    assert found.is_note == (not clean)


def test_a_partition_that_was_set_aside_is_read_all_the_same() -> None:
    fs, known = plain_log()
    fs.rename(DIRECTORY, f"{DIRECTORY}.0123-stray")
    found = check(fs, known)
    assert (
        Finding(
            f"{DIRECTORY}.0123-stray",
            "a partition that was set aside; no topic uses it",
            is_note=True,
        )
        in found
    )


def test_two_directories_of_different_clusters() -> None:
    fs, known = plain_log()
    manager = open_manager(fs, "/more")
    manager.close()
    found: list[Finding] = []
    check_directories(fs, [ROOT, "/more"], contents=known, on_finding=found.append)
    (fault,) = found
    assert fault.path == "/more/meta.properties"
    assert "another directory has cluster" in fault.what


def test_a_checkpoint_of_a_partition_that_is_not_there() -> None:
    fs, known = plain_log()
    path = f"{ROOT}/recovery-point-offset-checkpoint"
    put(fs, path, b"0\n2\nt 0 4\ngone 3 17\n")
    assert lines(check(fs, known)) == [
        f"{path}: offset 17, byte 10: note: there is no partition gone-3"
    ]


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 21 + "B", "A" * 21 + "é", "=" * 22])
def test_what_is_no_uuid(text: str) -> None:
    assert kafka_uuid(text) is None


def test_properties_as_java_writes_them() -> None:
    data = b"#\n#Tue Nov 17\n\nnode.id=1\r\n! more\nversion = 1\n"
    assert [line.text for line in property_lines(data)] == ["node.id=1", "version = 1"]
    with pytest.raises(Malformed, match=r"byte 10: node.id stands there twice"):
        property_lines(b"node.id=1\nnode.id=2\n")

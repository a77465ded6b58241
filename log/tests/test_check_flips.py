"""Every byte of a data directory flipped: the checker names the file, or the flip does no harm.

What it can't notice, and why:

- the cluster id in meta.properties: no other file has it;
- the broker epoch in the marker of a clean shutdown: nothing reads it;
- the offset up to which a log was compacted: the next compaction begins there, wherever it is;
- the offset of a batch with free offsets before and behind it, which compaction leaves, unless an
  index or the end of the log says otherwise: it lies outside the checksum;
- in the same way, the start of a leader epoch among offsets that no batch has.
"""

import random
from collections.abc import Iterator

from klamm.log.check.findings import Finding
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.checking import COMPACTED, KnownPartitions, check, written_directory
from klamm.log.tests.support import ROOT, TOPIC
from klamm.wire.records.batch import read_batch_header

META_PROPERTIES = f"{ROOT}/meta.properties"
CLEAN_SHUTDOWN = f"{ROOT}/.kafka_cleanshutdown"
CLEANER_OFFSETS = f"{ROOT}/cleaner-offset-checkpoint"


def flips(fs: MemoryFileSystem, folder: str) -> Iterator[tuple[str, int]]:
    """Flip one bit of each byte of each file in a folder, one after the other."""
    for path, data in fs.files().items():
        if path.rpartition("/")[0] != folder:
            continue
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1 << position % 8
            fs.overwrite(path, bytes(damaged))
            yield path, position
        fs.overwrite(path, data)


def names(finding: Finding, path: str) -> bool:
    """Whether a finding leads to a file, as its place or as what it does not agree with."""
    return path in str(finding) or path.rpartition("/")[2] in finding.what


def unnoticed(fs: MemoryFileSystem, known: KnownPartitions, folder: str) -> list[tuple[str, int]]:
    """Return the flips that the checker is silent about; the others it names by their file."""
    silent = []
    for path, position in flips(fs, folder):
        found = check(fs, known)
        if not found:
            silent.append((path, position))
        else:
            assert any(names(finding, path) for finding in found), (path, position, found)
    return silent


def test_a_good_directory_has_no_findings() -> None:
    fs, known = written_directory(clean=True)
    assert check(fs, known) == []
    assert sum(map(len, fs.files().values())) > 3000


def test_no_flip_in_a_partition_goes_unnoticed() -> None:
    fs, known = written_directory(clean=True, compacted=False)
    suffixes = {path.rpartition(".")[2] for path in fs.files() if f"/{TOPIC}-0/" in path}
    assert {"log", "index", "timeindex", "txnindex", "snapshot", "metadata"} <= suffixes
    assert unnoticed(fs, known, f"{ROOT}/{TOPIC}-0") == []


def test_flips_in_the_files_of_the_directory() -> None:
    fs, known = written_directory(clean=True)
    files = fs.files()
    cluster_id = files[META_PROPERTIES].partition(b"\n")[0]
    for path, position in unnoticed(fs, known, ROOT):
        if path == META_PROPERTIES:
            assert len(b"cluster.id=") <= position < len(cluster_id)
        elif path == CLEAN_SHUTDOWN:
            assert files[path][position : position + 1] in b"-1"
        else:
            assert path == CLEANER_OFFSETS
            assert position >= files[path].index(b"2000")


def test_flips_in_a_compacted_partition() -> None:
    fs, known = written_directory(clean=True)
    files = fs.files()
    batch_bytes = 74
    for path, position in unnoticed(fs, known, f"{ROOT}/{COMPACTED}-0"):
        if path.endswith(".log"):
            header = read_batch_header(files[path], position // batch_bytes * batch_bytes)
            assert position % batch_bytes in (6, 7), "only the low bytes of an offset"
            assert header.base_offset % 1000 == 500
        else:
            assert path.endswith("leader-epoch-checkpoint")
            assert position >= files[path].index(b"500")


def test_flips_below_the_recovery_point_of_a_killed_broker() -> None:
    fs, known = written_directory(clean=False, compacted=False)
    assert check(fs, known) == []
    last = max(path for path in fs.files() if path.endswith(".log"))
    for path, position in flips(fs, f"{ROOT}/{TOPIC}-0"):
        if path.endswith(".snapshot") and path >= last.removesuffix(".log"):
            # The newest ones recovery makes anew.
            continue
        found = [finding for finding in check(fs, known) if names(finding, path)]
        assert found, (path, position)
        # Another topic's id is taken for a topic that was deleted just before the kill.
        is_harmless = path.endswith("partition.metadata")
        assert is_harmless or not all(finding.is_note for finding in found)


def test_any_bytes_in_any_file_are_no_more_than_a_finding() -> None:
    fs, known = written_directory(clean=True)
    chance = random.Random(1)
    for path, data in fs.files().items():
        for _ in range(5):
            start, end = sorted(chance.choices(range(len(data) + 1), k=2))
            garbage = chance.randbytes(chance.randrange(200))
            fs.overwrite(path, data[:start] + garbage + data[end:])
            check(fs, known)
        fs.overwrite(path, data)
    assert check(fs, known) == []

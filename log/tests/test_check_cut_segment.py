"""A segment that was cut short, or emptied: its indexes are named once each."""

from klamm.log.check.findings import Finding
from klamm.log.config import LogConfig
from klamm.log.layout import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from klamm.log.tests.checking import check, put, written_directory
from klamm.log.tests.support import DIRECTORY

SEGMENT = f"{DIRECTORY}/{0:020d}"


def findings_of(found: list[Finding], suffix: str) -> list[Finding]:
    return [finding for finding in found if finding.path == SEGMENT + suffix]


def test_an_emptied_segment_is_one_line_for_each_index() -> None:
    config = LogConfig(segment_bytes=4096, index_interval_bytes=1)
    fs, known = written_directory(clean=True, compacted=False, config=config)
    put(fs, f"{SEGMENT}.log", b"")
    found = check(fs, known)
    (offsets,) = findings_of(found, OFFSET_INDEX_SUFFIX)
    assert "is behind the end of" in offsets.what
    assert offsets.what.endswith(" more entries")
    assert offsets.position == 0
    (times,) = findings_of(found, TIME_INDEX_SUFFIX)
    assert times.what.endswith(" more entries")
    (transactions,) = findings_of(found, TXN_INDEX_SUFFIX)
    assert transactions.what.endswith("; so it is with 1 more entries")


def test_a_single_entry_is_named_alone() -> None:
    fs, known = written_directory(clean=True, compacted=False)
    path = SEGMENT + OFFSET_INDEX_SUFFIX
    data = fs.files()[path]
    put(fs, path, data[:4] + (10**6).to_bytes(4, "big"))
    (line,) = findings_of(check(fs, known), OFFSET_INDEX_SUFFIX)
    assert "is behind the end of" in line.what
    assert "more" not in line.what

"""Reading files of batches without opening the log that they belong to.

Whoever reads so has not decided yet whether the directory is his: nothing is repaired, and nothing
is written. A log can be read up to its first bad batch; whether that is a torn tail or damage is
for recovery to say, once the log is opened.
"""

from collections.abc import Iterator

from klamm.log.batches import BadBatch, iter_batches
from klamm.log.errors import CorruptFileError, CorruptLogError
from klamm.log.fs import FileSystem
from klamm.log.layout import LOG_SUFFIX, parse_segment_file, segment_file
from klamm.wire.records.batch import RecordBatchHeader

Batches = Iterator[tuple[RecordBatchHeader, memoryview]]


def read_log(fs: FileSystem, directory: str, from_offset: int = 0) -> Batches:
    """Yield the batches of a log that end behind an offset, as far as they can be read.

    Raises:
        CorruptLogError: the log ends there, or a batch is damaged.
    """
    parsed = map(parse_segment_file, fs.list_files(directory))
    bases = sorted(name[0] for name in parsed if name and name[1:] == (LOG_SUFFIX, ""))
    # The last segment that begins at the offset or below it is the first that is wanted.
    first = max((base for base in bases if base <= from_offset), default=0)
    for base_offset in bases:
        if base_offset < first:
            continue
        path = f"{directory}/{segment_file(base_offset, LOG_SUFFIX)}"
        file = fs.open(path, read_only=True)
        next_offset = base_offset
        try:
            for _, header, batch in iter_batches(file, 0, file.size()):
                next_offset = header.next_offset
                if next_offset > from_offset:
                    yield header, batch
        except BadBatch as bad:
            raise CorruptLogError(path, next_offset, bad.position, bad.reason) from bad


def read_snapshot(fs: FileSystem, path: str) -> Batches:
    """Yield the batches of a metadata snapshot, which is there as a whole or not at all.

    Raises:
        CorruptFileError: a batch is damaged.
    """
    file = fs.open(path, read_only=True)
    try:
        for _, header, batch in iter_batches(file, 0, file.size()):
            yield header, batch
    except BadBatch as bad:
        raise CorruptFileError(path, str(bad)) from bad

"""`klamm dump FILE...`: print files of a data directory as people read them.

What a file is follows from its name; a log in a directory of an internal topic has its records
decoded. Bytes that can't be understood get a line that begins with `bad`, with their position.
Exit codes: 0 · 1 there were such bytes · 2 a file can't be read or is of no known kind.
"""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable, Iterator
from itertools import islice

from klamm.broker.commands.dump_files import (
    checkpoint_lines,
    epoch_lines,
    guarded,
    offset_index_lines,
    partition_metadata_lines,
    properties_lines,
    reserve_lines,
    snapshot_lines,
    text_lines,
    time_index_lines,
    txn_index_lines,
)
from klamm.broker.commands.dump_log import LogOptions, is_bad, log_lines
from klamm.broker.commands.stored import METADATA, decode_stored
from klamm.broker.commands.usage import UsageError, write_line
from klamm.log.check.root_files import CHECKPOINTS
from klamm.log.check.source import OsReadableFiles, Reader
from klamm.log.layout import (
    BOOT_FILE,
    BOOTSTRAP_CHECKPOINT,
    CLEAN_SHUTDOWN_FILE,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_SUFFIX,
    META_PROPERTIES,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    QUORUM_STATE,
    RESERVE_FILE,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_metadata_snapshot,
    parse_partition_directory,
    parse_segment_file,
    parse_snapshot_file,
)

EXIT_BAD = 1

_INDEXES: dict[str, Callable[[bytes, int, int], Iterator[str]]] = {
    OFFSET_INDEX_SUFFIX: offset_index_lines,
    TIME_INDEX_SUFFIX: time_index_lines,
    TXN_INDEX_SUFFIX: txn_index_lines,
}
_BY_NAME: dict[str, Callable[[bytes], Iterator[str]]] = {
    **dict.fromkeys(CHECKPOINTS, checkpoint_lines),
    LEADER_EPOCH_CHECKPOINT: epoch_lines,
    PARTITION_METADATA: partition_metadata_lines,
    META_PROPERTIES: properties_lines,
    CLEAN_SHUTDOWN_FILE: text_lines,
    LOCK_FILE: text_lines,
    QUORUM_STATE: text_lines,
    RESERVE_FILE: reserve_lines,
    BOOT_FILE: text_lines,
}


def run(options: argparse.Namespace) -> int:
    """Print the files that the options name.

    Raises:
        UsageError: a file can't be read, or its name is none that a data directory has.
    """
    has_bad = False
    for path in options.files:
        if len(options.files) > 1:
            write_line(f"file {path}")
        try:
            for line in islice(file_lines(path, options), options.limit):
                has_bad |= is_bad(line)
                write_line(line)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
    return EXIT_BAD if has_bad else 0


def file_lines(path: str, options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of a file; its name says what it is."""
    reader = Reader(OsReadableFiles())
    directory, name = os.path.split(os.path.abspath(path))
    topic = _topic_of(directory)
    segment = parse_segment_file(name)
    if parse_metadata_snapshot(name) is not None or name == BOOTSTRAP_CHECKPOINT:
        topic, segment = METADATA, (0, LOG_SUFFIX, "")
    if segment is not None and segment[1] == LOG_SUFFIX:
        wanted = LogOptions(options.from_offset, not options.no_records, decode_stored(topic))
        return log_lines(reader, reader.open(path), wanted)
    if segment is not None:
        base_offset, kind, _ = segment
        return _INDEXES[kind](reader.read_whole(path), base_offset, options.from_offset)
    read = snapshot_lines if parse_snapshot_file(name) else _BY_NAME.get(name)
    if read is None:
        raise UsageError(_what_it_is_not(path))
    return guarded(read, reader.read_whole(path))


def _what_it_is_not(path: str) -> str:
    """Return what to do about a path whose name says nothing."""
    if os.path.isdir(path):
        return f"{path} is a directory; name files in it, such as {path.rstrip('/')}/*.log"
    if not os.path.exists(path):
        return f"{path}: {os.strerror(errno.ENOENT)}"
    return (
        f"{path}: its name is none of a data directory's files; a file is known by its own name, "
        "such as 00000000000000000000.log"
    )


def _topic_of(directory: str) -> str:
    """Return the topic in whose directory a file lies, also one that is being deleted."""
    name = os.path.basename(directory)
    found = parse_partition_directory(name.partition(".")[0] if name.endswith("-delete") else name)
    return "" if found is None else found[0]

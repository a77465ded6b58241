"""The lines of `klamm dump` for indexes, snapshots, checkpoints and the other small files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from klamm.broker.commands.dump_log import bad_line
from klamm.broker.commands.text import time_text
from klamm.log.check.formats import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    TXN_ENTRY_SIZE,
    Malformed,
    offset_entries,
    snapshot_entries,
    time_entries,
    txn_entries,
)
from klamm.log.check.text_files import (
    epoch_checkpoint,
    offset_checkpoint,
    partition_metadata,
    property_lines,
    uuid_text,
)

# An open segment of Kafka has indexes of their full size, with zeros behind the last entry.
_ZERO_ENTRIES_MIN = 2


def offset_index_lines(data: bytes, base_offset: int, from_offset: int) -> Iterator[str]:
    """Yield the entries of an offset index."""
    written = _without_zeros(data, OFFSET_ENTRY_SIZE)
    for at, offset, position in offset_entries(written, base_offset):
        if offset >= from_offset:
            yield f"entry byte={at} offset={offset} position={position}"
    yield from _rest(data, len(written), OFFSET_ENTRY_SIZE)


def time_index_lines(data: bytes, base_offset: int, from_offset: int) -> Iterator[str]:
    """Yield the entries of a time index."""
    written = _without_zeros(data, TIME_ENTRY_SIZE)
    for at, timestamp, offset in time_entries(written, base_offset):
        if offset >= from_offset:
            yield f"entry byte={at} timestamp={time_text(timestamp)} offset={offset}"
    yield from _rest(data, len(written), TIME_ENTRY_SIZE)


def txn_index_lines(data: bytes, base_offset: int, from_offset: int) -> Iterator[str]:
    """Yield the entries of a transaction index."""
    for entry in txn_entries(data):
        if entry.last_offset >= from_offset:
            yield (
                f"aborted byte={entry.at} version={entry.version} producer_id={entry.producer_id}"
                f" offsets={entry.first_offset}..{entry.last_offset}"
                f" last_stable_offset={entry.last_stable_offset}"
            )
    yield from _rest(data, len(data), TXN_ENTRY_SIZE)


def _without_zeros(data: bytes, entry_size: int) -> bytes:
    written = data.rstrip(b"\0")
    size = -(-len(written) // entry_size) * entry_size
    zeros = len(data) - size
    return data[:size] if zeros >= _ZERO_ENTRIES_MIN * entry_size else data


def _rest(data: bytes, written: int, entry_size: int) -> Iterator[str]:
    if written < len(data):
        yield f"zeros byte={written} size={len(data) - written}"
    rest = written % entry_size
    if rest:
        at = written - rest
        yield bad_line(at, rest, f"less than an entry of {entry_size} bytes", data[at:])


def snapshot_lines(data: bytes) -> Iterator[str]:
    """Yield the producers of a snapshot."""
    for entry in snapshot_entries(data):
        yield (
            f"producer byte={entry.at} producer_id={entry.producer_id}"
            f" producer_epoch={entry.producer_epoch} last_sequence={entry.last_sequence}"
            f" last_offset={entry.last_offset} offset_delta={entry.offset_delta}"
            f" timestamp={time_text(entry.timestamp)}"
            f" coordinator_epoch={entry.coordinator_epoch}"
            f" txn_first_offset={entry.txn_first_offset}"
        )


def checkpoint_lines(data: bytes) -> Iterator[str]:
    """Yield the lines of an offset checkpoint."""
    for entry in offset_checkpoint(data):
        yield (
            f"line byte={entry.at} topic={entry.topic} partition={entry.partition}"
            f" offset={entry.offset}"
        )


def epoch_lines(data: bytes) -> Iterator[str]:
    """Yield the lines of a checkpoint of leader epochs."""
    for entry in epoch_checkpoint(data):
        yield f"line byte={entry.at} leader_epoch={entry.epoch} start_offset={entry.start_offset}"


def partition_metadata_lines(data: bytes) -> Iterator[str]:
    """Yield what partition.metadata says."""
    yield f"topic_id={uuid_text(partition_metadata(data))}"


def properties_lines(data: bytes) -> Iterator[str]:
    """Yield the entries of a properties file."""
    for line in property_lines(data):
        name, _, value = line.text.partition("=")
        yield f"{name.strip()}={value.strip()}"


def text_lines(data: bytes) -> Iterator[str]:
    """Yield a file of text as it is."""
    try:
        yield from data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise Malformed(error.start, "not text") from None


def guarded(read: Callable[[bytes], Iterable[str]], data: bytes) -> Iterator[str]:
    """Yield the lines of a file, or what is wrong with it and where."""
    try:
        yield from read(data)
    except Malformed as bad:
        at = bad.position
        yield bad_line(at, len(data) - at, bad.reason, data[at:])


def reserve_lines(data: bytes) -> Iterator[str]:
    """Nothing but room that is kept for deletions on a full disk."""
    yield f"reserve bytes={len(data)}"

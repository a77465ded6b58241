"""The lines of `klamm dump` for a file of batches: one for each batch and each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from klamm.broker.commands.stored import Decode, UnknownRecord
from klamm.broker.commands.text import bytes_text, hex_text, json_text, message_text, time_text
from klamm.log.check.source import ReadableFile, Reader
from klamm.log.check.walk import Batch, Damage, walk
from klamm.wire.codec import decode
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from klamm.wire.records.batch import LOG_APPEND_TIME, RecordBatchHeader
from klamm.wire.records.codecs import Codec
from klamm.wire.records.control import (
    ControlRecordType,
    parse_control_type,
    parse_end_transaction_marker,
)
from klamm.wire.records.record import Record, iter_records
from klamm.wire.schema import Message, Struct

_CODECS = {codec.value: codec.name.lower() for codec in Codec}
_CONTROL_MESSAGES: dict[ControlRecordType, type[Message]] = {
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}
_MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_BAD = "bad"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What of a log is shown.

    Attributes:
        from_offset: nothing below it.
        with_records: whether the records of the batches are shown.
        decode: what understands the records of this topic.
    """

    from_offset: int = 0
    with_records: bool = True
    decode: Decode | None = None


def is_bad(line: str) -> bool:
    """Whether a line shows bytes that could not be understood."""
    return line.startswith(_BAD)


def bad_line(position: int, size: int, reason: str, data: bytes | memoryview = b"") -> str:
    """Return the line for bytes that can't be understood."""
    shown = f": {hex_text(data)}" if data else ""
    return f"{_BAD} byte={position} size={size} reason={json_text(reason)}{shown}"


def log_lines(reader: Reader, file: ReadableFile, options: LogOptions) -> Iterator[str]:
    """Yield the lines of a log, past what can't be read."""
    for found in walk(reader, file, file.size()):
        if isinstance(found, Damage):
            size = found.end - found.position
            data = file.pread(min(size, 64), found.position)
            yield bad_line(found.position, size, found.reason, data)
        elif found.header.last_offset >= options.from_offset:
            yield batch_line(found.position, found.header)
            if options.with_records:
                yield from _record_lines(found, options)


def batch_line(position: int, header: RecordBatchHeader) -> str:
    """Return the line of a batch."""
    parts = [
        "batch",
        f"offsets={header.base_offset}..{header.last_offset}",
        f"byte={position}",
        f"size={header.size_in_bytes}",
        f"records={header.record_count}",
        f"leader_epoch={header.partition_leader_epoch}",
        f"codec={_CODECS.get(header.codec, header.codec)}",
        f"max_timestamp={time_text(header.max_timestamp)}",
    ]
    if header.timestamp_type == LOG_APPEND_TIME:
        parts.append("log_append_time")
    if header.producer_id >= 0:
        parts.append(f"producer_id={header.producer_id}")
        parts.append(f"producer_epoch={header.producer_epoch}")
        parts.append(f"sequence={header.base_sequence}")
    if header.is_transactional:
        parts.append("transactional")
    if header.is_control:
        parts.append("control")
    if header.has_delete_horizon:
        parts.append(f"delete_horizon={time_text(header.base_timestamp)}")
    return " ".join(parts)


def _record_lines(batch: Batch, options: LogOptions) -> Iterator[str]:
    try:
        for record in iter_records(batch.data):
            if record.offset >= options.from_offset:
                yield record_line(record, batch.header, options.decode)
    except WireError as error:
        size = batch.header.size_in_bytes
        yield bad_line(batch.position, size, f"the records can't be opened: {error}")


def record_line(record: Record, header: RecordBatchHeader, decode: Decode | None) -> str:
    """Return the line of a record; what can't be understood is shown as it is."""
    start = f"  record offset={record.offset} timestamp={time_text(record.timestamp)}"
    try:
        if header.is_control:
            return f"{start} {_control_text(record)}"
        if decode is not None:
            return f"{start} {_stored_text(record, decode)}"
    except WireError as error:
        # The line stays one of this record, and is found like any other bad one.
        raw = f"key={bytes_text(record.key)} value={bytes_text(record.value)}"
        return f"{_BAD} record offset={record.offset} reason={json_text(str(error))} {raw}"
    return f"{start} {_raw_text(record)}"


def _raw_text(record: Record) -> str:
    text = f"key={bytes_text(record.key)} value={bytes_text(record.value)}"
    if record.headers:
        headers = [
            [name.encode("utf-8", "surrogateescape"), value] for name, value in record.headers
        ]
        text += f" headers={json_text(headers)}"
    return text


def _stored_text(record: Record, decode: Decode) -> str:
    decoded = decode(record.key, record.value)
    if isinstance(decoded, UnknownRecord):
        return f"unknown_type={decoded.record_type} {_raw_text(record)}"
    if isinstance(decoded, Struct):
        return message_text(decoded)
    key, value = decoded
    return f"{message_text(key)} {'value=null' if value is None else message_text(value)}"


def _control_text(record: Record) -> str:
    control_type = parse_control_type(record.key)
    text = f"control={control_type.name}"
    if control_type in _MARKERS:
        return f"{text} coordinator_epoch={parse_end_transaction_marker(record).coordinator_epoch}"
    message_type = _CONTROL_MESSAGES.get(control_type)
    if message_type is None or record.value is None:
        return f"{text} {_raw_text(record)}"
    # The version is the first field of the message itself.
    version = int.from_bytes(record.value[:2], "big", signed=True)
    return f"{text} {message_text(decode(message_type, version, record.value))}"

"""The records inside a batch: they can be opened, and their offsets are those of the batch."""

from collections.abc import Iterator

from klamm.wire.errors import WireError
from klamm.wire.records.batch import CODEC_MASK, RecordBatchHeader
from klamm.wire.records.codecs import Codec
from klamm.wire.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    parse_control_type,
    parse_end_transaction_marker,
)
from klamm.wire.records.record import DECOMPRESSED_BYTES_MAX, Record, iter_records, open_payload
from klamm.wire.records.scan import summarize_records

_CODECS = frozenset(Codec)
_MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


def records_problem(header: RecordBatchHeader, data: memoryview) -> str | None:
    """Say what is wrong with the records of a batch whose checksum is right."""
    if header.attributes & CODEC_MASK not in _CODECS:
        return f"codec {header.codec} is unknown"
    if header.last_offset_delta < 0:
        return f"it ends {-header.last_offset_delta} offsets before it begins"
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        return f"{header.record_count} records in {header.last_offset_delta + 1} offsets"
    if header.record_count == 0:
        # Compaction leaves such batches for the sake of a producer's last sequence.
        return None
    try:
        payload = open_payload(data, header, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)
        summary = summarize_records(payload, header.record_count)
        if summary.offsets_are_consecutive:
            return None
        return _offsets_problem(header, iter_records(data))
    except WireError as error:
        return f"the records can't be opened: {error}"


def _offsets_problem(header: RecordBatchHeader, records: Iterator[Record]) -> str | None:
    due = header.base_offset
    for record in records:
        if not due <= record.offset <= header.last_offset:
            return f"a record of offset {record.offset} where {due} or more was due"
        due = record.offset + 1
    return None


def marker_of(data: memoryview) -> EndTransactionMarker | None:
    """Return the marker in a control batch; None where it is another control record, or emptied.

    Raises:
        WireError: it can't be read.
    """
    for record in iter_records(data):
        if parse_control_type(record.key) in _MARKERS:
            return parse_end_transaction_marker(record)
    return None

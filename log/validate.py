"""What a batch must be to enter the log; each refusal carries Kafka's code.

In the order in which a batch from a client is judged:

| check                                            | code                             |
|--------------------------------------------------|----------------------------------|
| a whole batch is there                           | INVALID_RECORD                   |
| its length and magic can be right                | CORRUPT_MESSAGE                  |
| magic 2                                          | INVALID_RECORD                   |
| zstd only from Produce 7 on                      | UNSUPPORTED_COMPRESSION_TYPE     |
| exactly one batch                                | INVALID_RECORD                   |
| base offset 0                                    | INVALID_RECORD                   |
| not larger than max.message.bytes                | MESSAGE_TOO_LARGE                |
| the checksum                                     | CORRUPT_MESSAGE                  |
| a known codec                                    | UNKNOWN_SERVER_ERROR             |
| as many records as offsets, at least one         | INVALID_RECORD                   |
| no control batch                                 | INVALID_RECORD                   |
| a sequence where there is a producer id          | INVALID_RECORD                   |
| each record: structure, key, timestamp           | see opening.py                   |
| not larger than max.message.bytes as recompressed| MESSAGE_TOO_LARGE                |

The first five are `check_request_shape`, which Kafka asks of a produce request before the log sees
it; the rest is `validate_batch`. A coordinator is trusted with offsets, counts, control batches and
sequences. What a leader has accepted (`validate_replicated`) is only checked for damage.

No record is looked at unless the topic needs it: 16 new bytes in front of the client's own are all
that an append changes. So, unlike Kafka, a batch of garbage under a valid checksum is stored on an
ordinary topic, and its header's own maximum timestamp is believed.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.opening import (
    KNOWN_ATTRIBUTES,
    OpenedRecords,
    must_open,
    needs_opening,
    open_checked,
)
from klamm.log.replay import marker_of
from klamm.wire.errors import ErrorCode, WireError
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    CURRENT_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    NO_PARTITION_LEADER_EPOCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    RecordBatchHeader,
    crc_is_valid,
    encode_batch_header,
    read_batch_header,
    with_log_append_time,
    with_offset_and_epoch,
)
from klamm.wire.records.codecs import Codec
from klamm.wire.records.control import EndTransactionMarker
from klamm.wire.records.record import DECOMPRESSED_BYTES_MAX

__all__ = [
    "OpenedRecords",
    "ReplicatedBatches",
    "ValidatedBatch",
    "check_request_shape",
    "is_transactional",
    "needs_opening",
    "open_records",
    "validate_batch",
    "validate_replicated",
]

Buffer = bytes | memoryview

ZSTD_FROM_VERSION = 7
_LENGTH_OFFSET = 8
_LENGTH = struct.Struct(">i")
# The overhead of a record in the oldest format, which is all that is known before the magic.
_BATCH_LENGTH_MIN = 14
_BATCH_LENGTH_MAX = 2**31 - 1 - LOG_OVERHEAD
_HEADER_UP_TO_MAGIC = MAGIC_OFFSET + 1
_ATTRIBUTES_LOW_BYTE = 22
_CODEC_MAX = Codec.ZSTD

_CLIENT = AppendOrigin.CLIENT
_REPLICATION = AppendOrigin.REPLICATION
_RAFT_LEADER = AppendOrigin.RAFT_LEADER


class ValidatedBatch(NamedTuple):
    """A batch that may be written, once its producer was checked.

    Attributes:
        header: of the batch as it is written, except for offset, epoch, length and checksum.
        marker: what a control batch of a coordinator says; None for all others.
        chunks: the bytes to write.
        size_in_bytes: of all chunks together.
        log_append_time_ms: -1 where the timestamps are the producer's.
    """

    header: RecordBatchHeader
    marker: EndTransactionMarker | None
    chunks: Sequence[bytes | memoryview]
    size_in_bytes: int
    max_timestamp: int
    log_append_time_ms: int


class ReplicatedBatches(NamedTuple):
    """Whole batches from a leader; markers has one entry per batch, mostly None."""

    headers: list[RecordBatchHeader]
    markers: list[EndTransactionMarker | None]
    records: bytes | memoryview


def check_request_shape(records: Buffer | None, api_version: int) -> None:
    """Check what a produce request of that version may bring for one partition.

    Bytes behind the batch that are not a whole batch themselves are ignored, as Kafka does.

    Raises:
        LogError: see the table above. A partition without records (null, which no client sends)
            is an UNKNOWN_SERVER_ERROR.
    """
    if records is None:
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, "there are no records")
    size = _next_batch_size(records, 0)
    if size is None:
        raise LogError(ErrorCode.INVALID_RECORD, "there is no whole batch")
    if records[MAGIC_OFFSET] != CURRENT_MAGIC:
        raise LogError(
            ErrorCode.INVALID_RECORD, f"magic {records[MAGIC_OFFSET]} is not {CURRENT_MAGIC}"
        )
    if api_version < ZSTD_FROM_VERSION and records[_ATTRIBUTES_LOW_BYTE] & CODEC_MASK == Codec.ZSTD:
        raise LogError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce {ZSTD_FROM_VERSION}, not {api_version}",
        )
    if size != len(records) and _next_batch_size(records, size) is not None:
        raise LogError(ErrorCode.INVALID_RECORD, "there is more than one batch")


def is_transactional(records: Buffer) -> bool:
    """Say whether the first batch belongs to a transaction, which Kafka asks of all partitions of
    a request before anything else.

    Raises:
        LogError: CORRUPT_MESSAGE or UNKNOWN_SERVER_ERROR, its length or magic can't be right.
    """
    if _next_batch_size(records, 0) is None or records[MAGIC_OFFSET] < CURRENT_MAGIC:
        return False
    return bool(records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_MASK)


def _next_batch_size(records: Buffer, position: int) -> int | None:
    """Return the size of the batch at position; None when it is not there as a whole.

    Raises:
        LogError: CORRUPT_MESSAGE, there can't be a batch of that length or magic;
            UNKNOWN_SERVER_ERROR, length and overhead together leave the range of Kafka's numbers.
    """
    left = len(records) - position
    if left < LOG_OVERHEAD:
        return None
    length: int = _LENGTH.unpack_from(records, position + _LENGTH_OFFSET)[0]
    if length < _BATCH_LENGTH_MIN:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, f"a batch length of {length} is too small")
    if left < _HEADER_UP_TO_MAGIC:
        return None
    if length > _BATCH_LENGTH_MAX:
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch length of {length} is too large")
    magic = records[position + MAGIC_OFFSET]
    if magic > CURRENT_MAGIC:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, f"there is no magic {magic}")
    size = LOG_OVERHEAD + length
    return size if size <= left else None


def validate_batch(
    records: Buffer,
    *,
    config: LogConfig,
    origin: AppendOrigin,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    opened: OpenedRecords | None = None,
) -> ValidatedBatch:
    """Judge one batch, and stamp it with its offset and the leader's epoch.

    Args:
        records: the batch; whatever lies behind it is dropped.
        opened: what open_records made of the same bytes, if they were opened before.

    Raises:
        LogError: see the table above.
    """
    header = _check_header(records, config, origin)
    if opened is None or opened.config is not config:
        opened = None
        if must_open(header, config, now_ms):
            opened = open_checked(records, header, config, now_ms)
    marker = None
    if header.attributes & CONTROL_MASK:
        marker = marker_of(records)
    if opened is not None and opened.is_rewritten:
        return _rewritten(opened, marker, config, base_offset, leader_epoch, now_ms)
    size = LOG_OVERHEAD + header.batch_length
    body = memoryview(records)
    if config.message_timestamp_type != "CreateTime":
        stamped = with_log_append_time(
            body,
            header,
            now_ms,
            base_offset=base_offset,
            partition_leader_epoch=leader_epoch,
        )
        chunks = (stamped, body[BATCH_HEADER_SIZE:size])
        return ValidatedBatch(header, marker, chunks, size, now_ms, now_ms)
    chunks = (
        with_offset_and_epoch(header, base_offset, leader_epoch),
        body[MAGIC_OFFSET:size],
    )
    return ValidatedBatch(header, marker, chunks, size, header.max_timestamp, -1)


def open_records(
    records: Buffer,
    config: LogConfig,
    *,
    now_ms: int,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> OpenedRecords:
    """Do the part of validate_batch that may take long; safe in any thread.

    Raises:
        LogError: the batch is refused; appending it would fail in the same way.
    """
    header = _check_header(records, config, origin)
    return open_checked(records, header, config, now_ms, decompressed_bytes_max)


def _check_header(records: Buffer, config: LogConfig, origin: AppendOrigin) -> RecordBatchHeader:
    try:
        header = read_batch_header(records)
    except WireError as error:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    # Unpacked, because each name of a named tuple is a search; this is done for every batch.
    base_offset, length, _, _, _, attributes, last_delta, _, _, producer_id, _, sequence, count = (
        header
    )
    is_client = origin is _CLIENT
    if is_client and base_offset != 0:
        raise LogError(ErrorCode.INVALID_RECORD, f"the base offset is {base_offset} instead of 0")
    size = LOG_OVERHEAD + length
    if size > config.max_message_bytes:
        raise LogError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes, {config.max_message_bytes} are allowed",
        )
    if not crc_is_valid(records, header):
        raise LogError(ErrorCode.CORRUPT_MESSAGE, "the checksum is wrong")
    if attributes & CODEC_MASK > _CODEC_MAX:
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no codec {header.codec}")
    if is_client and not (
        last_delta + 1 == count > 0
        and not attributes & CONTROL_MASK
        and (producer_id < 0 or sequence >= 0)
    ):
        _refuse_client_header(header)
    return header


def _refuse_client_header(header: RecordBatchHeader) -> None:
    count = header.record_count
    if header.last_offset_delta < 0:
        raise LogError(
            ErrorCode.INVALID_RECORD, f"the last offset delta is {header.last_offset_delta}"
        )
    if count <= 0:
        raise LogError(ErrorCode.INVALID_RECORD, f"a batch of {count} records")
    if header.last_offset_delta + 1 != count:
        raise LogError(
            ErrorCode.INVALID_RECORD, f"{count} records for {header.last_offset_delta + 1} offsets"
        )
    if header.attributes & CONTROL_MASK:
        raise LogError(ErrorCode.INVALID_RECORD, "clients must not write control batches")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise LogError(
            ErrorCode.INVALID_RECORD,
            f"sequence {header.base_sequence} from producer {header.producer_id}",
        )


def _rewritten(
    opened: OpenedRecords,
    marker: EndTransactionMarker | None,
    config: LogConfig,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> ValidatedBatch:
    header = opened.header
    size = BATCH_HEADER_SIZE + len(opened.records)
    if size > config.max_message_bytes:
        raise LogError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{size} bytes after recompression, {config.max_message_bytes} are allowed",
        )
    append_time = -1
    if config.uses_log_append_time:
        append_time = now_ms
        header = header._replace(
            attributes=header.attributes & KNOWN_ATTRIBUTES | TIMESTAMP_TYPE_MASK,
            max_timestamp=now_ms,
        )
    header = header._replace(base_offset=base_offset, partition_leader_epoch=leader_epoch)
    chunks = (encode_batch_header(header, opened.records), opened.records)
    return ValidatedBatch(header, marker, chunks, size, header.max_timestamp, append_time)


def validate_replicated(
    records: Buffer, log_end_offset: int, leader_epoch: int, origin: AppendOrigin
) -> ReplicatedBatches:
    """Take the whole batches of what a leader sent; a partial one at the end is left off.

    A follower also leaves off everything from the first batch of a later epoch than that of its
    fetch: the sender has become a follower itself meanwhile (KAFKA-18723).

    Raises:
        LogError: CORRUPT_MESSAGE, a batch is damaged; OFFSET_OUT_OF_RANGE, the first offset is
            below the log's end; INVALID_RECORD, offsets go back, or a Raft leader wrote a batch
            of another epoch.
    """
    view = memoryview(records)
    batches = ReplicatedBatches([], [], view)
    expected = log_end_offset
    position = 0
    while True:
        size = _next_batch_size(view, position)
        if size is None:
            break
        header = _replicated_header(view, position)
        epoch = header.partition_leader_epoch
        if origin is _RAFT_LEADER and epoch != leader_epoch:
            raise LogError(
                ErrorCode.INVALID_RECORD, f"a batch of epoch {epoch} in epoch {leader_epoch}"
            )
        if origin is _REPLICATION and epoch != NO_PARTITION_LEADER_EPOCH and epoch > leader_epoch:
            break
        if header.base_offset < expected:
            raise _offset_goes_back(header.base_offset, expected, is_first=position == 0)
        batches.headers.append(header)
        is_marker = header.attributes & CONTROL_MASK and header.producer_id >= 0
        batches.markers.append(marker_of(view[position : position + size]) if is_marker else None)
        expected = header.next_offset
        position += size
    return batches._replace(records=view[:position])


def _replicated_header(view: memoryview, position: int) -> RecordBatchHeader:
    try:
        header = read_batch_header(view, position)
    except WireError as error:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not crc_is_valid(view, header, position):
        raise LogError(ErrorCode.CORRUPT_MESSAGE, "the checksum is wrong")
    if header.last_offset_delta < 0:
        raise LogError(
            ErrorCode.CORRUPT_MESSAGE, f"the last offset delta is {header.last_offset_delta}"
        )
    return header


def _offset_goes_back(offset: int, expected: int, *, is_first: bool) -> LogError:
    if is_first:
        return LogError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is below the log's end {expected}"
        )
    return LogError(ErrorCode.INVALID_RECORD, f"offset {offset} comes after {expected - 1}")

"""Opening the records of a batch that is being appended, where the topic asks for it.

An ordinary topic is served by the header and the checksum alone. Four settings need more:

- `cleanup.policy=compact`: every record needs a key;
- `message.timestamp.before.max.ms`: the header knows the greatest timestamp, not the smallest;
- a header whose greatest timestamp is too late: the answer names the records that are;
- `compression.type` other than the batch's codec: the records are compressed anew.

Opening decompresses and walks all records in Python, so it can take far longer than the event loop
may be held up. It is a pure function of its arguments: a broker asks `needs_opening`, runs
`open_records` in a thread, and hands the result to `PartitionLog.append`. Whoever does not do that
gets the same result, opened inline.
"""

import struct
from typing import NamedTuple

from klamm.log.config import INT64_MAX, LogConfig
from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode, WireError
from klamm.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    CREATE_TIME,
    DELETE_HORIZON_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_OFFSET,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    RecordBatchHeader,
    encode_batch_header,
    read_batch_header,
)
from klamm.wire.records.codecs import Codec, DecompressionTooLarge, compress
from klamm.wire.records.record import (
    DECOMPRESSED_BYTES_MAX,
    build_batch,
    iter_records,
    open_payload,
)
from klamm.wire.records.scan import RecordsSummary, iter_timestamp_deltas, summarize_records

Buffer = bytes | memoryview

# Kafka lists every refused record, however many there are; nobody reads more than these.
RECORD_ERRORS_MAX = 1000
# Below this an uncompressed batch is walked in less time than a thread takes to start.
INLINE_BYTES_MAX = 4096

_TIMESTAMP = struct.Struct(">q")

KNOWN_ATTRIBUTES = (
    CODEC_MASK | TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK | DELETE_HORIZON_MASK
)
_TARGET_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class OpenedRecords(NamedTuple):
    """A batch whose records passed, and what is to be written of it.

    Attributes:
        config: the settings that it was opened for; another append opens it again.
        header: codec, timestamps and count as they will be written; offset, epoch, length and
            checksum are those of the request.
        records: what follows the header.
        is_rewritten: whether header or records are not what the client sent.
    """

    config: LogConfig
    header: RecordBatchHeader
    records: Buffer
    is_rewritten: bool


def target_codec(header: RecordBatchHeader, config: LogConfig) -> int:
    """Return the codec under which a batch is stored.

    Control batches are never compressed, unless they come so.
    """
    source = header.attributes & CODEC_MASK
    if config.compression_type == "producer" or (
        header.attributes & CONTROL_MASK and source == Codec.NONE
    ):
        return source
    return _TARGET_CODECS[config.compression_type]


def must_open(header: RecordBatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Say whether the header alone cannot decide about the batch."""
    if header.attributes & TIMESTAMP_TYPE_MASK:
        # No producer should claim that the broker set its timestamps.
        return True
    if config.trusts_headers:
        return header.max_timestamp - now_ms > config.timestamp_ahead_max_ms
    if config.compression_type != "producer" and (
        target_codec(header, config) != header.attributes & CODEC_MASK
    ):
        return True
    if config.compacts:
        return True
    if config.uses_log_append_time:
        return False
    return (
        config.message_timestamp_before_max_ms != INT64_MAX
        or header.max_timestamp - now_ms > config.timestamp_ahead_max_ms
    )


def needs_opening(records: Buffer, config: LogConfig, now_ms: int) -> bool:
    """Say whether a batch should be opened in a thread before it is appended.

    False also for small uncompressed batches, which append opens inline in no time, and for bytes
    that append will refuse anyway.
    """
    size = len(records)
    if size >= BATCH_HEADER_SIZE:
        attributes = records[ATTRIBUTES_OFFSET + 1]
        if size <= INLINE_BYTES_MAX and not attributes & CODEC_MASK:
            return False
        if config.trusts_headers and not attributes & TIMESTAMP_TYPE_MASK:
            # Almost every batch; its header is read when it is appended.
            (latest,) = _TIMESTAMP.unpack_from(records, MAX_TIMESTAMP_OFFSET)
            if latest - now_ms <= config.timestamp_ahead_max_ms:
                return False
    try:
        header = read_batch_header(records)
    except WireError:
        return False
    size = LOG_OVERHEAD + header.batch_length
    if size > len(records) or size > config.max_message_bytes:
        return False
    if size <= INLINE_BYTES_MAX and not header.attributes & CODEC_MASK:
        return False
    return must_open(header, config, now_ms)


def open_checked(
    records: Buffer,
    header: RecordBatchHeader,
    config: LogConfig,
    now_ms: int,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> OpenedRecords:
    """Open a batch whose header and checksum were found good.

    Raises:
        LogError: INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, or UNKNOWN_SERVER_ERROR
            (as Kafka answers) where the records can't be decompressed, or are compressed and
            their offsets have gaps.
    """
    payload = _open_payload(records, header, decompressed_bytes_max)
    if header.record_count <= 0:
        # Only a coordinator may write these; there is nothing to look at.
        return OpenedRecords(
            config, header, records[BATCH_HEADER_SIZE : header.size_in_bytes], False
        )
    keyless_max = RECORD_ERRORS_MAX if config.compacts else 0
    try:
        summary = summarize_records(payload, header.record_count, keyless_max=keyless_max)
    except WireError as error:
        raise LogError(ErrorCode.INVALID_RECORD, str(error)) from error
    _check_records(payload, header, summary, config, now_ms)
    return _rewrite(records, payload, header, summary, config)


def _open_payload(records: Buffer, header: RecordBatchHeader, bytes_max: int) -> Buffer:
    try:
        return open_payload(records, header, decompressed_bytes_max=bytes_max)
    except DecompressionTooLarge as error:
        raise LogError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except WireError as error:
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


# --- the checks of each record ---------------------------------------------------------------


def _check_records(
    payload: Buffer,
    header: RecordBatchHeader,
    summary: RecordsSummary,
    config: LogConfig,
    now_ms: int,
) -> None:
    lowest, highest = _timestamp_range(header, summary)
    if (
        summary.keyless_indexes
        or _timestamp_error(header, lowest, config, now_ms)
        or _timestamp_error(header, highest, config, now_ms)
    ):
        raise _refuse_records(payload, header, summary, config, now_ms)


def _timestamp_range(header: RecordBatchHeader, summary: RecordsSummary) -> tuple[int, int]:
    if header.timestamp_type == LOG_APPEND_TIME:
        return header.max_timestamp, header.max_timestamp
    base = header.base_timestamp
    return base + summary.min_timestamp_delta, base + summary.max_timestamp_delta


def _timestamp_error(
    header: RecordBatchHeader, timestamp: int, config: LogConfig, now_ms: int
) -> str | None:
    if not config.uses_log_append_time and timestamp != NO_TIMESTAMP:
        before_max_ms = config.message_timestamp_before_max_ms
        after_max_ms = config.message_timestamp_after_max_ms
        if now_ms - timestamp > before_max_ms or timestamp - now_ms > after_max_ms:
            earliest, latest = now_ms - before_max_ms, now_ms + after_max_ms
            return f"timestamp {timestamp} is not within {earliest}..{latest}"
    elif header.timestamp_type == LOG_APPEND_TIME:
        return "a producer must not set the timestamp type to LogAppendTime"
    return None


def _refuse_records(
    payload: Buffer,
    header: RecordBatchHeader,
    summary: RecordsSummary,
    config: LogConfig,
    now_ms: int,
) -> LogError:
    """Name each record that is refused: by its key first, else by its timestamp."""
    keyless = set(summary.keyless_indexes)
    is_append_time = header.timestamp_type == LOG_APPEND_TIME
    code = ErrorCode.INVALID_RECORD
    errors: list[tuple[int, str]] = []
    count = 0
    for index, delta in enumerate(iter_timestamp_deltas(payload, header.record_count)):
        message: str | None
        if index in keyless:
            message = "a record of a compacted topic needs a key"
        else:
            timestamp = header.max_timestamp if is_append_time else header.base_timestamp + delta
            message = _timestamp_error(header, timestamp, config, now_ms)
            if message is not None:
                code = ErrorCode.INVALID_TIMESTAMP
        if message is not None:
            count += 1
            if len(errors) < RECORD_ERRORS_MAX:
                errors.append((index, message))
    assert errors
    return LogError(code, f"{count} of {header.record_count} records are refused", errors)


# --- what is written -------------------------------------------------------------------------


def _rewrite(
    records: Buffer,
    payload: Buffer,
    header: RecordBatchHeader,
    summary: RecordsSummary,
    config: LogConfig,
) -> OpenedRecords:
    """Compress the records anew where they have to be, and correct what the header says of them."""
    source, target = header.codec, target_codec(header, config)
    max_timestamp = _timestamp_range(header, summary)[1]
    if source != target:
        return _recompress(payload, header, summary, config, target, max_timestamp)
    if source != Codec.NONE and not summary.offsets_are_consecutive:
        # Kafka answers so; in an uncompressed batch it does not look.
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, "the records' offsets are not consecutive")
    body = records[BATCH_HEADER_SIZE : header.size_in_bytes]
    is_right = header.timestamp_type == CREATE_TIME and header.max_timestamp == max_timestamp
    if is_right or config.uses_log_append_time:
        return OpenedRecords(config, header, body, False)
    changed = header._replace(
        attributes=header.attributes & KNOWN_ATTRIBUTES & ~TIMESTAMP_TYPE_MASK,
        max_timestamp=max_timestamp,
    )
    return OpenedRecords(config, changed, body, True)


def _recompress(
    payload: Buffer,
    header: RecordBatchHeader,
    summary: RecordsSummary,
    config: LogConfig,
    target: int,
    max_timestamp: int,
) -> OpenedRecords:
    """Build the batch anew: offsets count from 0, timestamps from that of the first record."""
    base_timestamp = header.base_timestamp
    first_delta = next(iter_timestamp_deltas(payload, header.record_count))
    if (
        first_delta != 0
        or not summary.offsets_are_consecutive
        or header.timestamp_type == LOG_APPEND_TIME
    ):
        opened = [
            (record.key, record.value, record.headers, record.timestamp)
            for record in iter_records(_encode_uncompressed(header, payload))
        ]
        payload = build_batch(opened)[BATCH_HEADER_SIZE:]
        base_timestamp = opened[0][3]
    changed = header._replace(
        attributes=header.attributes & (TRANSACTIONAL_MASK | CONTROL_MASK) | target,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
    )
    return OpenedRecords(config, changed, compress(target, payload, _level(target, config)), True)


def _encode_uncompressed(header: RecordBatchHeader, payload: Buffer) -> bytes:
    """Return the same batch without compression."""
    plain = header._replace(attributes=header.attributes & ~CODEC_MASK)
    return encode_batch_header(plain, payload) + bytes(payload)


def _level(codec: int, config: LogConfig) -> int | None:
    if codec == Codec.GZIP:
        return config.compression_gzip_level
    if codec == Codec.LZ4:
        return config.compression_lz4_level
    if codec == Codec.ZSTD:
        return config.compression_zstd_level
    return None

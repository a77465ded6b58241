"""Topics that look into records: keys, timestamps, recompression, the broker's clock."""

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.opening import RECORD_ERRORS_MAX
from klamm.log.tests.support import NOW_MS, open_one
from klamm.log.validate import ValidatedBatch, needs_opening, open_records, validate_batch
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import (
    LOG_APPEND_TIME,
    RecordBatchHeader,
    crc_is_valid,
    encode_batch_header,
    read_batch_header,
)
from klamm.wire.records.codecs import Codec
from klamm.wire.records.record import Record, build_batch, encode_record, iter_records

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
HOUR_MS = 3_600_000


def batch(*records: tuple[bytes | None, int], codec: int = 0, timestamp_type: int = 0) -> bytes:
    """Return a batch of (key, timestamp)."""
    return build_batch(
        [(key, b"value", (("h", b"x"),), timestamp) for key, timestamp in records],
        codec=codec,
        timestamp_type=timestamp_type,
    )


def with_header(records: bytes, **fields: int) -> bytes:
    header = read_batch_header(records)._replace(**fields)
    return encode_batch_header(header, records[61:]) + records[61:]


def validate(records: bytes, config: LogConfig) -> ValidatedBatch:
    return validate_batch(
        records,
        config=config,
        origin=AppendOrigin.CLIENT,
        base_offset=50,
        leader_epoch=2,
        now_ms=NOW_MS,
    )


def refusal(records: bytes, config: LogConfig) -> LogError:
    with pytest.raises(LogError) as raised:
        validate(records, config)
    return raised.value


def written(records: bytes, config: LogConfig) -> tuple[RecordBatchHeader, list[Record]]:
    """Return what is in the log after an append, which must be a valid batch."""
    validated = validate(records, config)
    data = b"".join(validated.chunks)
    header = read_batch_header(data)
    assert crc_is_valid(data, header)
    assert header.size_in_bytes == len(data) == validated.size_in_bytes
    assert (header.base_offset, header.partition_leader_epoch) == (50, 2)
    assert header.max_timestamp == validated.max_timestamp
    return header, list(iter_records(data))


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_names_the_records_without_a_key(codec: Codec) -> None:
    records = batch((b"k", NOW_MS), (None, NOW_MS), (b"", NOW_MS), (None, NOW_MS), codec=codec)
    error = refusal(records, COMPACTED)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert all("key" in message for _, message in error.record_errors)


def test_an_ordinary_topic_takes_records_without_a_key() -> None:
    validate(batch((None, NOW_MS)), LogConfig())


def test_the_number_of_named_records_is_bounded() -> None:
    records = batch(*[(None, NOW_MS)] * (RECORD_ERRORS_MAX + 5))
    assert len(refusal(records, COMPACTED).record_errors) == RECORD_ERRORS_MAX


# --- timestamps ----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_too_far_ahead_are_named(codec: Codec) -> None:
    late = NOW_MS + HOUR_MS + 1
    records = batch((b"k", NOW_MS), (b"k", late), (b"k", NOW_MS + HOUR_MS), codec=codec)
    error = refusal(records, LogConfig())
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1]
    assert str(late) in error.record_errors[0][1]


def test_records_too_old_are_named_although_the_header_does_not_show_it() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1000)
    records = batch((b"k", NOW_MS), (b"k", NOW_MS - 1001), (b"k", NOW_MS - 1000))
    error = refusal(records, config)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1]


def test_no_timestamp_is_never_out_of_bounds() -> None:
    validate(batch((b"k", -1)), LogConfig(message_timestamp_before_max_ms=1000))


def test_a_key_error_goes_before_a_timestamp_error_of_the_same_record() -> None:
    late = NOW_MS + 2 * HOUR_MS
    error = refusal(batch((None, late), (b"k", late), (b"k", NOW_MS)), COMPACTED)
    # One bad timestamp decides about the code, as in Kafka.
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [(index, "key" in message) for index, message in error.record_errors] == [
        (0, True),
        (1, False),
    ]


def test_a_header_that_names_a_later_time_than_its_records_is_corrected() -> None:
    records = with_header(batch((b"k", NOW_MS), (b"k", NOW_MS + 5)), max_timestamp=NOW_MS * 2)
    header, found = written(records, LogConfig())
    assert header.max_timestamp == NOW_MS + 5
    assert [record.timestamp for record in found] == [NOW_MS, NOW_MS + 5]


def test_a_producer_that_claims_log_append_time_is_corrected() -> None:
    records = batch((b"k", NOW_MS - 9), (b"k", NOW_MS), timestamp_type=LOG_APPEND_TIME)
    header, _ = written(records, LogConfig())
    assert (header.timestamp_type, header.max_timestamp) == (0, NOW_MS)


# --- the broker's clock --------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Codec))
def test_log_append_time_needs_a_new_header_only(codec: Codec) -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime")
    records = batch((b"a", 5), (b"b", 9), codec=codec)
    validated = validate(records, config)
    assert validated.log_append_time_ms == NOW_MS
    assert validated.max_timestamp == NOW_MS
    assert bytes(validated.chunks[1]) == records[61:]
    header, found = written(records, config)
    assert header.timestamp_type == LOG_APPEND_TIME
    assert [record.timestamp for record in found] == [NOW_MS, NOW_MS]


def test_a_producer_must_not_claim_log_append_time_where_the_broker_sets_it() -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime")
    records = batch((b"k", NOW_MS), (b"k", NOW_MS), timestamp_type=LOG_APPEND_TIME)
    error = refusal(records, config)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


def test_the_producer_timestamp_is_not_judged_where_the_broker_sets_it() -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    validate(batch((b"k", NOW_MS * 2), (b"k", 0)), config)


# --- recompression -------------------------------------------------------------------------------

NAMES = {
    Codec.NONE: "uncompressed",
    Codec.GZIP: "gzip",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstd",
}


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_records_are_stored_under_the_codec_of_the_topic(source: Codec, target: Codec) -> None:
    records = batch((b"a", NOW_MS), (None, NOW_MS - 3), (b"c", NOW_MS + 7), codec=source)
    header, found = written(records, LogConfig(compression_type=NAMES[target]))
    assert header.codec == target
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 7)
    assert found == [record._replace(offset=50 + record.offset) for record in iter_records(records)]
    if source == target:
        assert (
            b"".join(validate(records, LogConfig(compression_type=NAMES[target])).chunks)[16:]
            == (records[16:])
        )


@pytest.mark.parametrize("codec", list(Codec))
def test_producer_keeps_the_codec_of_the_batch(codec: Codec) -> None:
    records = batch((b"a", NOW_MS), codec=codec)
    assert b"".join(validate(records, LogConfig()).chunks)[16:] == records[16:]


def test_recompression_keeps_the_producer_and_the_transaction() -> None:
    records = build_batch(
        [(b"k", b"v", (), NOW_MS)],
        producer_id=8,
        producer_epoch=3,
        base_sequence=40,
        transactional=True,
    )
    header, _ = written(records, LogConfig(compression_type="zstd"))
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 3, 40)


def test_recompression_numbers_records_and_timestamps_anew() -> None:
    payload = encode_record(0, 5, b"a", b"1") + encode_record(9, 2, b"b", None, [("h", None)])
    header = read_batch_header(batch((b"k", NOW_MS)))._replace(record_count=2, last_offset_delta=1)
    records = encode_batch_header(header, payload) + payload
    header, found = written(records, LogConfig(compression_type="lz4"))
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS + 5, NOW_MS + 5)
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in found] == [
        (50, NOW_MS + 5, b"a", b"1", ()),
        (51, NOW_MS + 2, b"b", None, (("h", None),)),
    ]


def test_recompression_under_the_broker_clock() -> None:
    config = LogConfig(compression_type="gzip", message_timestamp_type="LogAppendTime")
    header, found = written(batch((b"a", 5), (b"b", 9)), config)
    assert (header.codec, header.timestamp_type) == (Codec.GZIP, LOG_APPEND_TIME)
    assert [record.timestamp for record in found] == [NOW_MS, NOW_MS]


def test_a_batch_that_has_become_too_large_is_refused() -> None:
    records = build_batch([(b"k", b"v" * 5000, (), NOW_MS)], codec=Codec.GZIP)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=1000)
    assert refusal(records, config).code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_bomb_is_refused_before_it_fills_the_memory() -> None:
    records = build_batch([(b"k", bytes(3_000_000), (), NOW_MS)], codec=Codec.ZSTD)
    assert len(records) < 1000
    with pytest.raises(LogError) as raised:
        open_records(records, COMPACTED, now_ms=NOW_MS, decompressed_bytes_max=1_000_000)
    assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE


# --- in another thread ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "config", "is_needed"),
    [
        (batch((b"k", NOW_MS)), LogConfig(), False),
        (batch((b"k", NOW_MS), codec=Codec.ZSTD), LogConfig(), False),
        (batch((b"k", NOW_MS), codec=Codec.ZSTD), COMPACTED, True),
        (batch((b"k", NOW_MS)), COMPACTED, False),
        (batch(*[(b"k", NOW_MS)] * 1000), COMPACTED, True),
        (batch(*[(b"k", NOW_MS)] * 1000), LogConfig(compression_type="gzip"), True),
        (batch(*[(b"k", NOW_MS)] * 1000), LogConfig(compression_type="uncompressed"), False),
        (batch(*[(b"k", NOW_MS)] * 1000), LogConfig(message_timestamp_before_max_ms=9), True),
        (batch(*[(b"k", NOW_MS * 2)] * 1000), LogConfig(), True),
        (batch(*[(b"k", 0)] * 1000), LogConfig(message_timestamp_type="LogAppendTime"), False),
        (batch(*[(b"k", NOW_MS)] * 1000)[:90], COMPACTED, False),
        (b"", COMPACTED, False),
    ],
)
def test_a_thread_is_asked_for_where_it_pays(
    records: bytes, config: LogConfig, is_needed: bool
) -> None:
    assert needs_opening(records, config, NOW_MS) == is_needed


@pytest.mark.parametrize("config", [COMPACTED, LogConfig(compression_type="gzip"), LogConfig()])
def test_opened_before_or_inline_the_log_holds_the_same(config: LogConfig) -> None:
    records = batch((b"a", NOW_MS), (b"b", NOW_MS + 1))
    logs = []
    for opened in (None, open_records(records, config, now_ms=NOW_MS)):
        fs = MemoryFileSystem()
        _, log = open_one(fs, config)
        log.append(records, leader_epoch=0, now_ms=NOW_MS, opened=opened)
        logs.append(log.read(0, 1000).slice.read())
    assert logs[0] == logs[1]


def test_what_was_opened_for_other_settings_is_opened_again() -> None:
    opened = open_records(batch((None, NOW_MS)), LogConfig(), now_ms=NOW_MS)
    _, log = open_one(MemoryFileSystem(), COMPACTED)
    with pytest.raises(LogError, match="INVALID_RECORD"):
        log.append(batch((None, NOW_MS)), leader_epoch=0, now_ms=NOW_MS, opened=opened)


def test_opening_refuses_what_appending_would_refuse() -> None:
    with pytest.raises(LogError, match="CORRUPT_MESSAGE"):
        open_records(batch((b"k", NOW_MS))[:-1], COMPACTED, now_ms=NOW_MS)


# --- which batches are opened --------------------------------------------------------------------

SETTINGS: dict[str, LogConfig] = {
    "ordinary": LogConfig(),
    "compacted": COMPACTED,
    "recompressed": LogConfig(compression_type="zstd"),
    "not too old": LogConfig(message_timestamp_before_max_ms=HOUR_MS),
    "stamped": LogConfig(message_timestamp_type="LogAppendTime"),
    "stamped, not too old": LogConfig(
        message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=HOUR_MS
    ),
    "any time ahead": LogConfig(message_timestamp_after_max_ms=2**63 - 1),
}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
@pytest.mark.parametrize("timestamp_type", [0, LOG_APPEND_TIME])
@pytest.mark.parametrize("ahead_ms", [0, HOUR_MS, HOUR_MS + 1])
@pytest.mark.parametrize("name", SETTINGS)
def test_only_what_the_header_can_not_decide_is_opened(
    name: str, ahead_ms: int, timestamp_type: int, codec: Codec
) -> None:
    has_no_limit = name in ("stamped", "stamped, not too old", "any time ahead")
    expected = (
        name in ("compacted", "not too old")
        or (name == "recompressed" and codec != Codec.ZSTD)
        or timestamp_type == LOG_APPEND_TIME
        or (ahead_ms > HOUR_MS and not has_no_limit)
    )
    latest = NOW_MS + ahead_ms
    many = [(b"%d" % index, latest) for index in range(5_000)]
    records = batch(*many, codec=codec, timestamp_type=timestamp_type)
    assert read_batch_header(records).max_timestamp == latest
    assert needs_opening(records, SETTINGS[name], NOW_MS) == expected
    assert needs_opening(memoryview(records), SETTINGS[name], NOW_MS) == expected
    # What will be refused anyway is not opened.
    assert not needs_opening(records[:-1], SETTINGS[name], NOW_MS)
    assert not needs_opening(records[:60], SETTINGS[name], NOW_MS)

"""Which batches are refused, with which code, and in which order (reliability row 21).

Codes marked by their table as golden were answered by Apache Kafka 4.3.1 to the same bytes.
"""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.tests.support import NOW_MS, open_one
from klamm.log.validate import check_request_shape, validate_batch, validate_replicated
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import encode_batch_header, read_batch_header
from klamm.wire.records.codecs import Codec, compress
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import build_batch

E = ErrorCode
GOOD = build_batch([(b"k", b"v", (), NOW_MS)])
PLAIN = LogConfig()
SMALL = LogConfig(max_message_bytes=len(GOOD))


def changed(records: bytes = GOOD, **fields: Any) -> bytes:
    """Change fields of the header; the checksum fits again afterwards."""
    header = read_batch_header(records)._replace(**fields)
    body = records[61:]
    data = bytearray(encode_batch_header(header, body) + body)
    if "batch_length" in fields:
        data[8:12] = struct.pack(">i", fields["batch_length"])
    if "magic" in fields:
        data[16:17] = struct.pack(">b", fields["magic"])
    return bytes(data)


def with_wrong_crc(records: bytes) -> bytes:
    return records[:17] + bytes(4) + records[21:]


def with_records(payload: bytes, codec: int = 0, count: int = 1) -> bytes:
    """Return a batch whose records are any bytes."""
    header = read_batch_header(GOOD)._replace(
        attributes=codec, record_count=count, last_offset_delta=count - 1
    )
    return encode_batch_header(header, payload) + payload


def code_of(function: Callable[[], object]) -> ErrorCode:
    """Return the code with which a call is refused, NONE when it is not."""
    try:
        function()
    except LogError as error:
        return error.code
    return E.NONE


def produce(
    records: bytes | None, config: LogConfig = PLAIN, version: int = 9, now_ms: int = NOW_MS
) -> ErrorCode:
    """Judge what a produce request brings, from its shape to its records."""

    def both() -> None:
        check_request_shape(records, version)
        assert records is not None
        validate_batch(
            memoryview(records),
            config=config,
            origin=AppendOrigin.CLIENT,
            base_offset=100,
            leader_epoch=3,
            now_ms=now_ms,
        )

    return code_of(both)


# --- golden ------------------------------------------------------------------------------------

GOLDEN: dict[str, tuple[bytes, ErrorCode]] = {
    "good": (GOOD, E.NONE),
    "empty": (b"", E.INVALID_RECORD),
    "cut in the offset": (GOOD[:5], E.INVALID_RECORD),
    "cut in the length": (GOOD[:11], E.INVALID_RECORD),
    "cut behind the length": (GOOD[:12], E.INVALID_RECORD),
    "cut before the magic": (GOOD[:16], E.INVALID_RECORD),
    "cut behind the magic": (GOOD[:17], E.INVALID_RECORD),
    "cut in the header": (GOOD[:60], E.INVALID_RECORD),
    "cut behind the header": (GOOD[:61], E.INVALID_RECORD),
    "cut in the records": (GOOD[:-1], E.INVALID_RECORD),
    "magic -1": (changed(magic=-1), E.CORRUPT_MESSAGE),
    "magic 0": (changed(magic=0), E.INVALID_RECORD),
    "magic 1": (changed(magic=1), E.INVALID_RECORD),
    "magic 3": (changed(magic=3), E.CORRUPT_MESSAGE),
    "length -1": (changed(batch_length=-1), E.CORRUPT_MESSAGE),
    "length 0": (changed(batch_length=0), E.CORRUPT_MESSAGE),
    "length 13": (changed(batch_length=13), E.CORRUPT_MESSAGE),
    "length 14": (changed(batch_length=14), E.CORRUPT_MESSAGE),
    "length 48": (changed(batch_length=48), E.CORRUPT_MESSAGE),
    "length 49": (changed(batch_length=49), E.CORRUPT_MESSAGE),
    "length one too small": (changed(batch_length=len(GOOD) - 13), E.CORRUPT_MESSAGE),
    "length too large": (changed(batch_length=len(GOOD)), E.INVALID_RECORD),
    "two batches": (GOOD + GOOD, E.INVALID_RECORD),
    "five bytes more": (GOOD + b"12345", E.NONE),
    "twelve zeros more": (GOOD + bytes(12), E.CORRUPT_MESSAGE),
    "part of a batch more": (GOOD + GOOD[:40], E.NONE),
    "an unknown magic more": (
        GOOD + bytes(8) + struct.pack(">i", 20) + bytes(4) + b"\x09" + bytes(20),
        E.CORRUPT_MESSAGE,
    ),
    "base offset 5": (changed(base_offset=5), E.INVALID_RECORD),
    "wrong checksum": (with_wrong_crc(GOOD), E.CORRUPT_MESSAGE),
    "wrong checksum, base offset 5": (with_wrong_crc(changed(base_offset=5)), E.INVALID_RECORD),
    "codec 5": (changed(attributes=5), E.UNKNOWN_SERVER_ERROR),
    "codec 6": (changed(attributes=6), E.UNKNOWN_SERVER_ERROR),
    "codec 7": (changed(attributes=7), E.UNKNOWN_SERVER_ERROR),
    "last offset delta -1": (changed(last_offset_delta=-1), E.INVALID_RECORD),
    "last offset delta 1": (changed(last_offset_delta=1), E.INVALID_RECORD),
    "no records": (changed(record_count=0), E.INVALID_RECORD),
    "-1 records": (changed(record_count=-1), E.INVALID_RECORD),
    "no records, no offsets": (changed(record_count=0, last_offset_delta=-1), E.INVALID_RECORD),
    "control batch": (changed(attributes=0x20), E.INVALID_RECORD),
    "producer without sequence": (changed(producer_id=5, producer_epoch=0), E.INVALID_RECORD),
    "producer with sequence": (
        changed(producer_id=5, producer_epoch=0, base_sequence=0),
        E.NONE,
    ),
    "attributes of the future": (changed(attributes=0x4080), E.NONE),
    "delete horizon": (changed(attributes=0x40), E.NONE),
    "timestamp below -1": (build_batch([(b"k", b"v", (), -5)]), E.NONE),
    "claims log append time": (build_batch([(b"k", b"v", (), NOW_MS)], timestamp_type=1), E.NONE),
    "claims log append time -1": (
        build_batch([(b"k", b"v", (), -1)], timestamp_type=1),
        E.INVALID_TIMESTAMP,
    ),
    "an hour and a bit ahead": (
        build_batch([(b"k", b"v", (), NOW_MS + 3_700_000)]),
        E.INVALID_TIMESTAMP,
    ),
    "zstd": (build_batch([(b"k", b"v", (), NOW_MS)], codec=Codec.ZSTD), E.NONE),
}


@pytest.mark.parametrize(("records", "code"), GOLDEN.values(), ids=GOLDEN.keys())
def test_an_ordinary_topic_answers_as_kafka(records: bytes, code: ErrorCode) -> None:
    assert produce(records) == code


# The same topic with `cleanup.policy=compact`, which opens the records.
GOLDEN_OPENED: dict[str, tuple[bytes, ErrorCode]] = {
    "too few records": (changed(record_count=2, last_offset_delta=1), E.INVALID_RECORD),
    "no gzip": (with_records(b"\xff" * 20, Codec.GZIP), E.UNKNOWN_SERVER_ERROR),
    "no snappy": (with_records(b"\xff" * 20, Codec.SNAPPY), E.UNKNOWN_SERVER_ERROR),
    "no lz4": (with_records(b"\xff" * 20, Codec.LZ4), E.UNKNOWN_SERVER_ERROR),
    "no zstd": (with_records(b"\xff" * 20, Codec.ZSTD), E.UNKNOWN_SERVER_ERROR),
    "nothing in gzip": (with_records(b"", Codec.GZIP), E.UNKNOWN_SERVER_ERROR),
    "garbage in gzip": (
        with_records(compress(Codec.GZIP, b"\xff" * 20), Codec.GZIP),
        E.INVALID_RECORD,
    ),
    "bytes behind the records": (with_records(GOOD[61:] + b"zz"), E.INVALID_RECORD),
    "bytes behind them in gzip": (
        with_records(compress(Codec.GZIP, GOOD[61:] + b"zz"), Codec.GZIP),
        E.INVALID_RECORD,
    ),
    "the same offset twice": (with_records(GOOD[61:] + GOOD[61:], count=2), E.NONE),
    "the same offset twice in gzip": (
        with_records(compress(Codec.GZIP, GOOD[61:] * 2), Codec.GZIP, count=2),
        E.UNKNOWN_SERVER_ERROR,
    ),
}


@pytest.mark.parametrize(("records", "code"), GOLDEN_OPENED.values(), ids=GOLDEN_OPENED.keys())
def test_a_compacted_topic_answers_as_kafka(records: bytes, code: ErrorCode) -> None:
    assert produce(records, LogConfig(cleanup_policy=frozenset({"compact"}))) == code


@pytest.mark.parametrize(("records", "code"), GOLDEN.values(), ids=GOLDEN.keys())
def test_a_compacted_topic_answers_to_headers_as_an_ordinary_one(
    records: bytes, code: ErrorCode
) -> None:
    assert produce(records, LogConfig(cleanup_policy=frozenset({"compact"}))) == code


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, E.UNSUPPORTED_COMPRESSION_TYPE), (6, E.UNSUPPORTED_COMPRESSION_TYPE), (7, E.NONE)],
)
def test_zstd_needs_produce_7(version: int, code: ErrorCode) -> None:
    assert produce(GOLDEN["zstd"][0], version=version) == code


def test_no_records_at_all_are_refused() -> None:
    # Kafka does not answer such a request.
    assert produce(None) == E.UNKNOWN_SERVER_ERROR


# --- the order of checks -------------------------------------------------------------------------

# Each field makes a batch wrong in one way; the earlier one in this list decides.
FAULTS: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"base_offset": 1}, E.INVALID_RECORD),
    ({"size": True}, E.MESSAGE_TOO_LARGE),
    ({"crc": True}, E.CORRUPT_MESSAGE),
    ({"attributes": 7}, E.UNKNOWN_SERVER_ERROR),
    ({"record_count": 3}, E.INVALID_RECORD),
    ({"max_timestamp": NOW_MS * 2, "base_timestamp": NOW_MS * 2}, E.INVALID_TIMESTAMP),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
@pytest.mark.parametrize("second", range(len(FAULTS)))
def test_of_two_faults_the_earlier_one_is_answered(first: int, second: int) -> None:
    fields: dict[str, Any] = {**FAULTS[first][0], **FAULTS[second][0]}
    too_large = fields.pop("size", False)
    wrong_crc = fields.pop("crc", False)
    records = changed(**fields)
    if wrong_crc:
        records = with_wrong_crc(records)
    config = LogConfig(max_message_bytes=len(GOOD) - 1) if too_large else PLAIN
    assert produce(records, config) == FAULTS[min(first, second)][1]


def test_a_batch_larger_than_a_segment_is_refused_before_its_producer_is_asked() -> None:
    _, log = open_one(MemoryFileSystem(), LogConfig(segment_bytes=len(GOOD) - 1))
    out_of_order = changed(producer_id=5, producer_epoch=0, base_sequence=7)
    with pytest.raises(LogError) as raised:
        log.append(out_of_order, leader_epoch=0, now_ms=NOW_MS)
    assert raised.value.code == E.RECORD_LIST_TOO_LARGE


def test_a_batch_of_just_the_allowed_size_is_taken() -> None:
    assert produce(GOOD, SMALL) == E.NONE
    larger = build_batch([(b"k", b"vv", (), NOW_MS)])
    assert produce(larger, SMALL) == E.MESSAGE_TOO_LARGE


def test_a_refused_batch_leaves_no_trace() -> None:
    fs = MemoryFileSystem()
    _, log = open_one(fs, LogConfig(cleanup_policy=frozenset({"compact"})))
    log.append(GOOD, leader_epoch=0, now_ms=NOW_MS)
    before = fs.files()
    refused = 0
    for records, code in [*GOLDEN.values(), *GOLDEN_OPENED.values()]:
        if code == E.NONE or records.startswith(GOOD):
            # What follows a batch is refused by the shape of the request; the log drops it.
            continue
        with pytest.raises(LogError):
            log.append(records, leader_epoch=1, now_ms=NOW_MS)
        refused += 1
        assert fs.files() == before
        assert (log.log_end_offset, log.latest_epoch) == (1, 0)
        assert not log.producers.entries
    assert refused > 30


# --- what others may write -----------------------------------------------------------------------


def validate_as(origin: AppendOrigin, records: bytes) -> ErrorCode:
    return code_of(
        lambda: validate_batch(
            records, config=PLAIN, origin=origin, base_offset=7, leader_epoch=0, now_ms=NOW_MS
        )
    )


def test_a_coordinator_is_trusted_with_offsets_counts_and_control_batches() -> None:
    for records in (
        changed(base_offset=5),
        changed(record_count=0, last_offset_delta=0),
        changed(producer_id=5, producer_epoch=0),
    ):
        assert validate_as(AppendOrigin.COORDINATOR, records) == E.NONE
    assert validate_as(AppendOrigin.COORDINATOR, with_wrong_crc(GOOD)) == E.CORRUPT_MESSAGE


def test_a_marker_is_read() -> None:
    records = build_end_transaction_marker(
        producer_id=4, producer_epoch=2, commit=False, coordinator_epoch=9, timestamp=NOW_MS
    )
    batch = validate_batch(
        records,
        config=LogConfig(compression_type="gzip"),
        origin=AppendOrigin.COORDINATOR,
        base_offset=7,
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    assert batch.marker is not None
    assert (batch.marker.is_commit, batch.marker.coordinator_epoch) == (False, 9)
    # Control batches are never compressed.
    assert b"".join(batch.chunks)[61:] == records[61:]


def test_only_the_first_sixteen_bytes_are_new() -> None:
    batch = validate_batch(
        GOOD,
        config=PLAIN,
        origin=AppendOrigin.CLIENT,
        base_offset=1234,
        leader_epoch=5,
        now_ms=NOW_MS,
    )
    written = b"".join(batch.chunks)
    assert written[16:] == GOOD[16:]
    header = read_batch_header(written)
    assert (header.base_offset, header.partition_leader_epoch) == (1234, 5)
    assert batch.size_in_bytes == len(written) == len(GOOD)
    assert (batch.max_timestamp, batch.log_append_time_ms, batch.marker) == (NOW_MS, -1, None)


# --- what a leader has accepted ------------------------------------------------------------------


def replicate(
    *batches: bytes,
    log_end_offset: int = 10,
    leader_epoch: int = 3,
    origin: AppendOrigin = AppendOrigin.REPLICATION,
) -> tuple[list[int], int]:
    """Return the base offsets and bytes that a follower takes."""
    taken = validate_replicated(b"".join(batches), log_end_offset, leader_epoch, origin)
    assert len(taken.markers) == len(taken.headers)
    return [header.base_offset for header in taken.headers], len(taken.records)


def stored(offset: int, epoch: int = 3) -> bytes:
    return changed(base_offset=offset, partition_leader_epoch=epoch)


def test_a_follower_takes_whole_batches_and_leaves_the_rest() -> None:
    size = len(GOOD)
    assert replicate(stored(10), stored(11), stored(12)[:30]) == ([10, 11], 2 * size)
    assert replicate(stored(10), stored(15)) == ([10, 15], 2 * size)
    assert replicate() == ([], 0)
    assert replicate(stored(10)[:40]) == ([], 0)


def test_a_follower_stops_at_a_later_epoch_than_that_of_its_fetch() -> None:
    assert replicate(stored(10, 2), stored(11, 4), stored(12, 3)) == ([10], len(GOOD))
    assert replicate(stored(10, 4)) == ([], 0)
    assert replicate(stored(10, -1)) == ([10], len(GOOD))


def test_what_a_leader_may_not_send() -> None:
    assert code_of(lambda: replicate(stored(9))) == E.OFFSET_OUT_OF_RANGE
    assert code_of(lambda: replicate(stored(10), stored(10))) == E.INVALID_RECORD
    assert code_of(lambda: replicate(with_wrong_crc(stored(10)))) == E.CORRUPT_MESSAGE
    assert code_of(lambda: replicate(changed(stored(10), magic=1))) == E.CORRUPT_MESSAGE
    assert code_of(lambda: replicate(changed(stored(10), last_offset_delta=-1))) == (
        E.CORRUPT_MESSAGE
    )


def test_a_raft_leader_writes_its_own_epoch_alone() -> None:
    raft = AppendOrigin.RAFT_LEADER
    assert replicate(stored(10, 3), origin=raft) == ([10], len(GOOD))
    assert code_of(lambda: replicate(stored(10, 2), origin=raft)) == E.INVALID_RECORD

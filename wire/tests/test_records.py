"""Records inside a batch: the same in, the same out, one at a time; kafka-python and kio agree."""

import tracemalloc
import warnings
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from klamm.wire.errors import WireError
from klamm.wire.records.batch import (
    BATCH_HEADER_SIZE,
    LOG_APPEND_TIME,
    read_batch_header,
)
from klamm.wire.records.codecs import Codec
from klamm.wire.records.record import (
    Record,
    RecordToBuild,
    build_batch,
    encode_record,
    iter_records,
    open_payload,
)
from klamm.wire.tests.batches import CODECS, by_codec, raw_batch, records_to_build, sample_batch
from klamm.wire.tests.values import some_examples

with warnings.catch_warnings():
    # kafka-python reads its message descriptions in a way that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder


@by_codec
@some_examples(4)
@given(st.lists(records_to_build, min_size=1, max_size=5), st.integers(0, 2**40))
def test_what_is_built_is_read(codec: int, records: list[RecordToBuild], base_offset: int) -> None:
    batch = build_batch(records, codec=codec, base_offset=base_offset, base_sequence=5)
    expected = [
        Record(base_offset + i, timestamp, key, value, tuple(headers), 5 + i)
        for i, (key, value, headers, timestamp) in enumerate(records)
    ]
    assert list(iter_records(batch)) == expected
    assert list(iter_records(memoryview(batch + b"the next batch"))) == expected
    header = read_batch_header(batch)
    assert header.record_count == header.last_offset_delta + 1 == len(records)
    assert header.base_timestamp == records[0][3]
    assert header.max_timestamp == max(record[3] for record in records)


# kafka-python has no snappy without one more library.
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD])
@some_examples(8)
@given(st.lists(records_to_build, min_size=1, max_size=4))
def test_kafka_python_reads_what_is_built(codec: int, records: list[RecordToBuild]) -> None:
    theirs = DefaultRecordBatch(build_batch(records, codec=codec, base_offset=7))
    assert theirs.validate_crc()
    assert [
        (record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in theirs
    ] == [
        (7 + i, timestamp, key, value, tuple(headers))
        for i, (key, value, headers, timestamp) in enumerate(records)
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD])
@some_examples(8)
@given(st.lists(records_to_build, min_size=1, max_size=4))
def test_what_kafka_python_builds_is_read(codec: int, records: list[RecordToBuild]) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=True,
        producer_id=9,
        producer_epoch=1,
        base_sequence=3,
        batch_size=1 << 20,
    )
    for i, (key, value, headers, timestamp) in enumerate(records):
        builder.append(i, timestamp=timestamp, key=key, value=value, headers=list(headers))
    batch = bytes(builder.build())
    header = read_batch_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 3)
    assert header.is_transactional
    assert [record[:5] for record in iter_records(batch)] == [
        (i, timestamp, key, value, tuple(headers))
        for i, (key, value, headers, timestamp) in enumerate(records)
    ]


@some_examples(4)
@given(st.lists(records_to_build, min_size=1, max_size=4))
def test_kio_reads_what_is_built(records: list[RecordToBuild]) -> None:
    # kio keeps whole seconds only.
    whole = [(key, value, hs, 1000 * (at // 1000)) for key, value, hs, at in records]
    batch = build_batch(whole, base_offset=7, producer_id=5, producer_epoch=6, base_sequence=7)
    theirs, size = read_batch(batch, 0)
    assert size == len(batch)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (5, 6, 7)
    assert [
        (
            record.offset,
            int(record.timestamp.timestamp()) * 1000,
            record.key,
            record.value,
            tuple((str(header.key or b"", "utf-8"), header.value) for header in record.headers),
        )
        for record in theirs.records
    ] == [
        (7 + i, timestamp, key, value, tuple(headers))
        for i, (key, value, headers, timestamp) in enumerate(whole)
    ]


def test_a_record_is_the_bytes_of_the_protocol() -> None:
    record = encode_record(1, 500, b"k", None, [("h", b"v"), ("n", None)])
    # length 15, attributes, timestamp delta 500, offset delta 1, key, null, two headers
    assert record == bytes.fromhex("1e 00 e807 02 02 6b 01 04 02 68 02 76 02 6e 01")


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = sample_batch(timestamp_type=LOG_APPEND_TIME)
    maximum = read_batch_header(batch).max_timestamp
    assert [record.timestamp for record in iter_records(batch)] == [maximum] * 3


def test_sequences_wrap_inside_a_batch() -> None:
    batch = sample_batch(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert [record.sequence for record in iter_records(batch)] == [2**31 - 2, 2**31 - 1, 0]


def test_a_header_key_of_any_bytes_survives() -> None:
    key = str(b"\xff\xfe", "utf-8", "surrogateescape")
    batch = build_batch([(None, None, [(key, b"v")], 0)])
    (record,) = iter_records(batch)
    assert record.headers == ((key, b"v"),)
    assert build_batch([(None, None, record.headers, 0)]) == batch


def test_records_are_read_when_they_are_asked_for() -> None:
    good = [encode_record(i, 0, None, b"x" * 1000) for i in range(1000)]
    batch = raw_batch(b"".join(good) + b"\x7f", 1001)
    records = iter_records(batch)
    tracemalloc.start()
    try:
        assert [record.offset for record in islice(records, 3)] == [0, 1, 2]
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()
    with pytest.raises(WireError):
        list(records)


def test_the_payload_is_a_view_where_it_is_not_compressed() -> None:
    batch = sample_batch()
    payload = open_payload(batch, read_batch_header(batch))
    assert isinstance(payload, memoryview)
    assert payload.obj is batch
    assert payload == batch[BATCH_HEADER_SIZE:]
    for codec in CODECS[1:]:
        compressed = sample_batch(codec)
        assert open_payload(compressed, read_batch_header(compressed)) == payload


def test_an_emptied_batch_has_no_records_whatever_its_codec() -> None:
    for codec in CODECS:
        assert list(iter_records(raw_batch(b"", 0, codec))) == []

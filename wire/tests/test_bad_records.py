"""Records that are not what they say are refused, the same in every codec."""

import pytest

from klamm.wire.errors import WireError
from klamm.wire.records.batch import read_batch_header
from klamm.wire.records.codecs import DecompressionTooLarge, compress
from klamm.wire.records.record import build_batch, encode_record, iter_records, open_payload
from klamm.wire.tests.batches import CODECS, by_codec, raw_batch, sample_batch

GOOD = encode_record(0, 0, b"k", b"v", [("h", b"v")])

BAD_RECORDS = {
    "fewer records than promised": (GOOD, 2, "ends inside a record"),
    "more bytes than records": (GOOD + GOOD, 1, "bytes behind the last record"),
    "more records than int32 bytes": (GOOD, 2**31 - 1, "ends inside a record"),
    "a negative number of records": (GOOD, -1, "a batch of -1 records"),
    "no bytes": (b"", 1, "ends inside a record"),
    "a record longer than the batch": (b"\x7e" + GOOD[1:], 1, "a record of 63 bytes"),
    "a record of negative length": (b"\x01" + GOOD[1:], 1, "1 headers in -9 bytes"),
    "a record shorter than its length": (
        b"\x1a" + GOOD[1:] + b"\x00",
        1,
        "off its declared length",
    ),
    "a key beyond the record": (bytes.fromhex("0c 00 00 00 7e 00 00"), 1, "ends inside a record"),
    "a huge key": (bytes.fromhex("12 00 00 00 fe ff ff ff 0f 00"), 1, "ends inside a record"),
    "a huge value": (bytes.fromhex("14 00 00 00 01 fe ff ff ff 0f 00"), 1, "ends inside a record"),
    "a negative number of headers": (bytes.fromhex("0c 00 00 00 01 01 01"), 1, "-1 headers"),
    "more headers than bytes": (bytes.fromhex("0c 00 00 00 01 01 7e"), 1, "63 headers in 0 bytes"),
    "a header without a key": (
        bytes.fromhex("10 00 00 00 01 01 02 01 01"),
        1,
        "a header key of -1 bytes",
    ),
    "a header that ends with its null key": (
        bytes.fromhex("0e 00 00 00 01 01 02 01"),
        1,
        "a header key of -1 bytes",
    ),
    "a header key beyond the record": (
        bytes.fromhex("10 00 00 00 01 01 02 7e 01"),
        1,
        "ends inside a varint",
    ),
    "a header value beyond the record": (
        bytes.fromhex("10 00 00 00 01 01 02 00 7e"),
        1,
        "reaches beyond its record",
    ),
    "an endless varint": (b"\xff" * 100, 1, "more than 5 bytes"),
    "an endless timestamp": (b"\x40\x00" + b"\xff" * 40, 1, "more than 10 bytes"),
}


@pytest.mark.parametrize(("payload", "count", "reason"), BAD_RECORDS.values(), ids=BAD_RECORDS)
@by_codec
def test_bad_records_are_refused_in_every_codec(
    codec: int, payload: bytes, count: int, reason: str
) -> None:
    with pytest.raises(WireError, match=reason):
        list(iter_records(raw_batch(compress(codec, payload), count, codec)))


@by_codec
def test_a_batch_that_ends_early_is_refused(codec: int) -> None:
    batch = sample_batch(codec)
    for end in range(len(batch)):
        with pytest.raises(WireError):
            list(iter_records(batch[:end]))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(WireError, match=f"unknown compression codec {codec}"):
        list(iter_records(raw_batch(GOOD, 1, codec)))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_records_that_expand_beyond_the_budget_are_refused(codec: int) -> None:
    batch = build_batch([(None, bytes(10_000), (), 0)], codec=codec)
    size = len(open_payload(batch, read_batch_header(batch)))
    assert len(list(iter_records(batch, decompressed_bytes_max=size))) == 1
    with pytest.raises(DecompressionTooLarge):
        list(iter_records(batch, decompressed_bytes_max=size - 1))

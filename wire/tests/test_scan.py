"""The one-pass summary of a batch's records says what reading them one by one says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.wire.errors import WireError
from klamm.wire.records.record import encode_record, iter_records
from klamm.wire.records.scan import iter_timestamp_deltas, summarize_records
from klamm.wire.tests.batches import header_keys, raw_batch, some_bytes
from klamm.wire.tests.cost import peak_of
from klamm.wire.tests.test_bad_records import BAD_RECORDS

deltas = st.integers(-100, 100) | st.integers(-(2**63), 2**63 - 1)
offset_deltas = st.integers(-(2**31), 2**31 - 1)
long_keys = some_bytes | st.just(b"k" * 100)
headers = st.lists(st.tuples(header_keys, some_bytes), max_size=2)
records = st.lists(
    st.tuples(offset_deltas, deltas, long_keys, long_keys, headers), min_size=1, max_size=6
)


@given(records, st.booleans(), st.integers(0, 4))
def test_a_summary_is_that_of_the_records(
    described: list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    consecutive: bool,
    keyless_max: int,
) -> None:
    if consecutive:
        described = [(i, *record[1:]) for i, record in enumerate(described)]
    payload = b"".join(encode_record(*record) for record in described)
    count = len(described)
    summary = summarize_records(payload, count, keyless_max=keyless_max)
    assert summarize_records(memoryview(payload), count, keyless_max=keyless_max) == summary
    timestamps = [record[1] for record in described]
    assert summary.min_timestamp_delta == min(timestamps)
    assert summary.max_timestamp_delta == max(timestamps)
    keyless = [i for i, record in enumerate(described) if record[2] is None]
    assert list(summary.keyless_indexes) == keyless[:keyless_max]
    assert summary.offsets_are_consecutive == ([r[0] for r in described] == list(range(count)))
    assert list(iter_timestamp_deltas(payload, count)) == timestamps


@pytest.mark.parametrize(
    ("payload", "count"), [case[:2] for case in BAD_RECORDS.values() if case[1] > 0]
)
def test_bad_records_are_refused(payload: bytes, count: int) -> None:
    with pytest.raises(WireError):
        summarize_records(payload, count)


@given(st.binary(max_size=40), st.integers(1, 3))
def test_it_takes_and_refuses_what_reading_one_by_one_does(payload: bytes, count: int) -> None:
    agrees_with_reading(payload, count)


@given(records, st.integers(0, 1000), st.integers(0, 255))
def test_it_takes_and_refuses_damaged_records_alike(
    described: list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    place: int,
    byte: int,
) -> None:
    payload = bytearray(b"".join(encode_record(*record) for record in described))
    payload[place % len(payload)] = byte
    agrees_with_reading(bytes(payload), len(described))
    agrees_with_reading(bytes(payload[: place % len(payload)]), len(described))


def agrees_with_reading(payload: bytes, count: int) -> None:
    try:
        expected = list(iter_records(raw_batch(payload, count)))
    except WireError:
        with pytest.raises(WireError):
            summarize_records(payload, count)
    else:
        keyless = [i for i, record in enumerate(expected) if record.key is None]
        summary = summarize_records(payload, count, keyless_max=count)
        assert list(summary.keyless_indexes) == keyless


def test_nothing_is_copied() -> None:
    payload = b"".join(encode_record(i, i, b"k" * 500, b"v" * 500) for i in range(200))
    assert peak_of(lambda: summarize_records(payload, 200)) < 10_000

"""A batch with any byte changed or cut is records or a WireError, and mostly a wrong checksum."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.wire.errors import WireError
from klamm.wire.records.batch import crc_is_valid, read_batch_header
from klamm.wire.records.control import read_end_transaction_marker
from klamm.wire.records.record import iter_records, open_payload
from klamm.wire.records.scan import summarize_records
from klamm.wire.tests.batches import by_codec, sample_batch
from klamm.wire.tests.values import some_examples

BUDGET = 10_000


def open_every_way(batch: bytes) -> None:
    """Do everything with a batch that opens it; nothing but a WireError may come of it."""
    with suppress(WireError):
        for record in iter_records(batch, decompressed_bytes_max=BUDGET):
            assert len(record.value or b"") <= BUDGET
    with suppress(WireError):
        read_end_transaction_marker(batch)
    with suppress(WireError):
        header = read_batch_header(batch)
        payload = open_payload(batch, header, decompressed_bytes_max=BUDGET)
        if header.record_count > 0:
            summarize_records(payload, header.record_count)


@by_codec
@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_every_byte_replaced(codec: int, byte: int) -> None:
    batch = sample_batch(codec)
    for place in range(len(batch)):
        open_every_way(batch[:place] + bytes([byte]) + batch[place + 1 :])


@by_codec
def test_every_cut(codec: int) -> None:
    batch = sample_batch(codec)
    for end in range(len(batch)):
        open_every_way(batch[:end])


@by_codec
@some_examples(2)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.binary(max_size=3)), max_size=4)
)
def test_several_changes(codec: int, changes: list[tuple[int, int, bytes]]) -> None:
    batch = bytearray(sample_batch(codec))
    for place, removed, inserted in changes:
        position = place % len(batch)
        batch[position : position + removed] = inserted
    open_every_way(bytes(batch))


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    open_every_way(data)


@by_codec
def test_a_changed_bit_behind_the_checksum_is_noticed(codec: int) -> None:
    batch = sample_batch(codec)
    for place in range(17, len(batch)):
        damaged = bytearray(batch)
        damaged[place] ^= 0x10
        assert not crc_is_valid(damaged, read_batch_header(damaged))

"""Unsigned varints are the same in the fast codec, in the construct form and in kio."""

from io import BytesIO

import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.readers import read_unsigned_varint
from kio.serial.writers import write_unsigned_varint
from kio.static.primitive import uvarint

from klamm.wire import codec, construct_form
from klamm.wire.errors import WireError
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from klamm.wire.primitives import Uvarint
from klamm.wire.uvarint import read_uvarint, write_uvarint

# The last value of each number of bytes, the first of the next, and the largest.
EDGES = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1]


@pytest.mark.parametrize("value", EDGES)
def test_edges(value: int) -> None:
    is_the_same_everywhere(value)


@given(st.integers(0, 2**31 - 1))
def test_any_value(value: int) -> None:
    is_the_same_everywhere(value)


def is_the_same_everywhere(value: int) -> None:
    encoded = write_uvarint(value)
    written = BytesIO()
    write_unsigned_varint(written, uvarint(value))
    assert written.getvalue() == encoded
    assert Uvarint.build(value) == encoded
    assert read_unsigned_varint(encoded, 0) == (value, len(encoded))
    assert Uvarint.parse(encoded) == value
    assert read_uvarint(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))
    for end in range(len(encoded)):
        with pytest.raises(WireError, match="ends inside a varint"):
            read_uvarint(encoded[:end], 0)


@pytest.mark.parametrize("value", [-1, -128, 2**31, 2**35])
def test_a_value_that_is_negative_or_has_more_than_31_bits_is_not_written(value: int) -> None:
    with pytest.raises(WireError, match="out of range"):
        write_uvarint(value)
    with pytest.raises(ConstructError, match="out of range"):
        Uvarint.build(value)


@given(st.binary(min_size=5, max_size=7))
def test_any_bytes_read_the_same_or_are_refused(data: bytes) -> None:
    try:
        expected = Uvarint.parse(data)
    except ConstructError:
        with pytest.raises(WireError):
            read_uvarint(data, 0)
    else:
        assert read_uvarint(data, 0)[0] == expected


@pytest.mark.parametrize("edge", EDGES[2:8])
def test_records_of_a_length_at_each_edge(edge: int) -> None:
    for size in (edge - 1, edge):
        partitions = [PartitionProduceData(index=1, records=bytes(size))]
        topics = [TopicProduceData(name="t", partition_data=partitions)]
        request = ProduceRequest(topic_data=topics)
        encoded = codec.encode(request, 9)
        assert encoded == construct_form.encode(request, 9)
        assert codec.decode(ProduceRequest, 9, encoded) == request

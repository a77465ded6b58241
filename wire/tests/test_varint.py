"""The zig-zag varints of records: the same as kio's and Kafka's, and never longer than they may."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.readers import read_signed_varint, read_signed_varlong
from kio.serial.writers import write_signed_varint, write_signed_varlong

from klamm.wire.errors import WireError
from klamm.wire.records.varint import encode_varint, read_varint, read_varlong

KNOWN = {
    0: "00",
    -1: "01",
    1: "02",
    63: "7e",
    -64: "7f",
    64: "8001",
    -65: "8101",
    2**31 - 1: "feffffff0f",
    -(2**31): "ffffffff0f",
}
KNOWN_LONG = {2**63 - 1: "feffffffffffffffff01", -(2**63): "ffffffffffffffffff01"}


@pytest.mark.parametrize(("value", "text"), (KNOWN | KNOWN_LONG).items())
def test_known_bytes(value: int, text: str) -> None:
    encoded = bytes.fromhex(text)
    assert encode_varint(value) == encoded
    assert read_varlong(encoded, 0) == (value, len(encoded))
    if value in KNOWN:
        assert read_varint(encoded, 0) == (value, len(encoded))


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_varints_are_those_of_kio(value: int, before: bytes, behind: bytes) -> None:
    encoded = encode_varint(value)
    written = BytesIO()
    write_signed_varint(written, value)
    assert written.getvalue() == encoded
    assert read_signed_varint(encoded, 0) == (value, len(encoded))
    end = len(before) + len(encoded)
    assert read_varint(before + encoded + behind, len(before)) == (value, end)
    assert read_varint(memoryview(before + encoded + behind), len(before)) == (value, end)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_are_those_of_kio(value: int) -> None:
    encoded = encode_varint(value)
    written = BytesIO()
    write_signed_varlong(written, value)
    assert written.getvalue() == encoded
    assert read_signed_varlong(encoded, 0) == (value, len(encoded))
    assert read_varlong(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize("value", [0, 63, 64, -65, 2**31 - 1, -(2**31)])
def test_a_varint_that_ends_early_is_refused(value: int) -> None:
    encoded = encode_varint(value)
    for end in range(len(encoded)):
        with pytest.raises(WireError, match="ends inside a varint"):
            read_varint(encoded[:end], 0)
        with pytest.raises(WireError, match="ends inside a varint"):
            read_varlong(encoded[:end], 0)


def test_a_varint_never_takes_more_than_its_bytes() -> None:
    with pytest.raises(WireError, match="more than 5 bytes"):
        read_varint(b"\x80" * 5 + b"\x00", 0)
    with pytest.raises(WireError, match="more than 10 bytes"):
        read_varlong(b"\x80" * 10 + b"\x00", 0)
    with pytest.raises(WireError, match="more than 5 bytes"):
        read_varint(b"\xff" * 1_000_000, 0)


def test_bits_beyond_the_width_are_dropped_as_in_kafka() -> None:
    assert read_varint(b"\xff\xff\xff\xff\x7f", 0) == (-(2**31), 5)
    assert read_varlong(b"\xff" * 9 + b"\x7f", 0) == (-(2**63), 10)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, -(2**64)])
def test_a_value_beyond_64_bits_is_a_mistake_of_the_caller(value: int) -> None:
    with pytest.raises(AssertionError):
        encode_varint(value)

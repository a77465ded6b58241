"""Headers by hand are the declared headers, with the two rules that are easy to miss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.wire import construct_form
from klamm.wire.errors import WireError
from klamm.wire.header import (
    API_VERSIONS_KEY,
    RequestHeader,
    UnsupportedVersion,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_start,
)
from klamm.wire.limits import Limits
from klamm.wire.messages import header as declared
from klamm.wire.registry import API_KEYS, api, is_flexible

KEYS_AND_VERSIONS = [
    (key, version)
    for key in API_KEYS
    for version in range(api(key).min_version, api(key).max_version + 1)
]
client_ids = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
correlation_ids = st.integers(-(2**31), 2**31 - 1)


def header_version(key: int, version: int) -> int:
    return 2 if is_flexible(key, version) else 1


@given(st.sampled_from(KEYS_AND_VERSIONS), correlation_ids, client_ids, st.binary(max_size=5))
def test_request_headers_are_those_of_the_declaration(
    key_and_version: tuple[int, int], correlation_id: int, client_id: str | None, body: bytes
) -> None:
    header = RequestHeader(*key_and_version, correlation_id, client_id)
    encoded = encode_request_header(header)
    specified = declared.RequestHeader(
        request_api_key=header.api_key,
        request_api_version=header.api_version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    assert construct_form.encode(specified, header_version(*key_and_version)) == encoded
    assert decode_request_header(encoded + body) == (header, len(encoded))
    assert decode_request_header(memoryview(encoded + body)) == (header, len(encoded))


@given(st.sampled_from(KEYS_AND_VERSIONS), correlation_ids, st.binary(max_size=5))
def test_response_headers_are_those_of_the_declaration(
    key_and_version: tuple[int, int], correlation_id: int, body: bytes
) -> None:
    key, version = key_and_version
    start = encode_response_start(key, version, correlation_id, len(body))
    encoded = start[4:]
    assert int.from_bytes(start[:4], "big") == len(encoded) + len(body)
    specified = declared.ResponseHeader(correlation_id=correlation_id)
    form_version = 1 if is_flexible(key, version) and key != API_VERSIONS_KEY else 0
    assert construct_form.encode(specified, form_version) == encoded
    assert decode_response_header(key, version, encoded + body) == (correlation_id, len(encoded))


@pytest.mark.parametrize("version", range(5))
def test_a_response_to_api_versions_never_has_a_tagged_section(version: int) -> None:
    start = encode_response_start(API_VERSIONS_KEY, version, 1, 0)
    assert start == b"\x00\x00\x00\x04\x00\x00\x00\x01"
    assert decode_response_header(API_VERSIONS_KEY, version, b"\x00\x00\x00\x01\x05") == (1, 4)


def test_every_other_flexible_response_has_one() -> None:
    for key, version in KEYS_AND_VERSIONS:
        if key != API_VERSIONS_KEY and is_flexible(key, version):
            start = encode_response_start(key, version, 1, 2)
            assert start == b"\x00\x00\x00\x07\x00\x00\x00\x01\x00"


@pytest.mark.parametrize(("version", "tail"), [(2, b""), (3, b"\x00")])
def test_the_client_id_has_a_length_of_two_bytes_in_every_version(
    version: int, tail: bytes
) -> None:
    encoded = encode_request_header(RequestHeader(API_VERSIONS_KEY, version, 1, "abc"))
    assert encoded[8:] == b"\x00\x03abc" + tail


def test_tagged_fields_of_a_header_are_skipped() -> None:
    frame = bytes.fromhex("0012 0003 00000001 ffff 02 00 02 aabb 7f 00") + b"body"
    header, body_at = decode_request_header(frame)
    assert header == RequestHeader(API_VERSIONS_KEY, 3, 1, None)
    assert frame[body_at:] == b"body"
    assert decode_response_header(3, 12, bytes.fromhex("00000001 01 00 01 aa") + b"body") == (1, 8)


@pytest.mark.parametrize(
    ("key", "version"),
    [(-1, 0), (4, 0), (93, 0), (32767, 0), (0, 2), (0, 14), (22, 6)],
)
def test_an_unknown_api_or_version_says_what_the_answer_needs(key: int, version: int) -> None:
    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    with pytest.raises(UnsupportedVersion) as raised:
        decode_request_header(frame + b"\x00\x00\x00\x2a" + b"\xff" * 20)
    error = raised.value
    assert (error.api_key, error.api_version, error.correlation_id) == (key, version, 42)


@pytest.mark.parametrize("version", [5, 6, 32767])
def test_a_later_version_of_api_versions_is_answered_if_its_header_is_one(version: int) -> None:
    start = b"\x00\x12" + version.to_bytes(2, "big") + b"\x00\x00\x00\x2a"
    with pytest.raises(UnsupportedVersion) as raised:
        decode_request_header(start + b"\x00\x02me" + b"\x01\x00\x01x" + b"whatever follows")
    assert raised.value.correlation_id == 42
    for rest in (b"", b"\x00\x02m", b"\xff\xfe\x00", b"\xff\xff", b"\xff\xff\x01\x00\x05x"):
        with pytest.raises(WireError) as refused:
            decode_request_header(start + rest)
        assert not isinstance(refused.value, UnsupportedVersion)


@pytest.mark.parametrize("version", [2, 3])
def test_a_header_that_ends_early_is_refused(version: int) -> None:
    encoded = encode_request_header(RequestHeader(API_VERSIONS_KEY, version, 1, "grün"))
    for end in range(len(encoded)):
        with pytest.raises(WireError):
            decode_request_header(encoded[:end])
    for end in range(5):
        with pytest.raises(WireError):
            decode_response_header(3, 12, bytes(end))


@pytest.mark.parametrize(
    "hostile",
    [
        "0012 0003 00000001 fffe 00",
        "0012 0003 00000001 8000 00",
        "0012 0003 00000001 7fff 61",
        "0012 0003 00000001 0001 ff 00",
        "0012 0003 00000001 ffff ffffffffffff",
        "0012 0003 00000001 ffff 01 00 ffffffff07",
        "0012 0003 00000001 ffff 01 ffffffffff00",
        "0012 0003 00000001 ffff ffffffff07",
    ],
)
def test_a_hostile_header_is_refused(hostile: str) -> None:
    with pytest.raises(WireError):
        decode_request_header(bytes.fromhex(hostile))


def test_the_number_of_tagged_fields_is_limited() -> None:
    frame = bytes.fromhex("0012 0003 00000001 ffff 03") + b"\x00\x00" * 3
    assert decode_request_header(frame, Limits(tagged_fields_max=3))[1] == len(frame)
    with pytest.raises(WireError, match="3 tagged fields are too many"):
        decode_request_header(frame, Limits(tagged_fields_max=2))


@given(st.binary(max_size=40))
def test_random_bytes_are_a_header_or_refused(frame: bytes) -> None:
    try:
        header, body_at = decode_request_header(frame)
    except WireError:
        return
    assert body_at <= len(frame)
    again, end = decode_request_header(encode_request_header(header))
    assert again == header
    assert end <= body_at


@pytest.mark.parametrize(
    "header",
    [
        RequestHeader(18, 3, 2**31, None),
        RequestHeader(18, 3, 1, "x" * 32768),
        RequestHeader(18, 3, 1, "\ud800"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(header: RequestHeader) -> None:
    with pytest.raises(WireError):
        encode_request_header(header)

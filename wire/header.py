"""Request and response headers, read and written by hand: they are on every request.

Two rules are easy to miss. client_id keeps its two-byte length even in the flexible header
version 2, so that an old broker can read the header of any ApiVersions request. And a response
to ApiVersions always has header version 0, because its client does not know yet what the broker
understands (KIP-511). Request header version 0 left Kafka with 4.0.
"""

import struct
from typing import Any, NamedTuple

from klamm.wire.codec import Data
from klamm.wire.errors import WireError
from klamm.wire.fast_runtime import skip_tags
from klamm.wire.limits import DEFAULT_LIMITS, Limits
from klamm.wire.registry import VERSION_BOUNDS, is_flexible

API_VERSIONS_KEY = 18

_unpack_start = struct.Struct(">hhih").unpack_from
_pack_start = struct.Struct(">hhih").pack
_pack_response_start = struct.Struct(">ii").pack
_pack_flexible_response_start = struct.Struct(">iix").pack
_START_BYTES = 10
_NO_BOUNDS = (0, -1, 0)


class RequestHeader(NamedTuple):
    """What a request says about itself."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedVersion(WireError):  # noqa: N818 (the name of Kafka's own error)
    """The API or the version of it is unknown, so the rest of the request cannot be read."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"API {api_key} has no version {api_version}")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


def decode_request_header(
    frame: Data, limits: Limits = DEFAULT_LIMITS
) -> tuple[RequestHeader, int]:
    """Read the header of a request; give it and the offset of the body.

    Raises:
        UnsupportedVersion: the API or its version is unknown.
        WireError: the bytes are not a header.
    """
    try:
        key, version, correlation_id, length = _unpack_start(frame)
        first, last, flexible_from = VERSION_BOUNDS.get(key, _NO_BOUNDS)
        is_known = first <= version <= last
        if not is_known and key != API_VERSIONS_KEY:
            raise UnsupportedVersion(key, version, correlation_id)
        position = _START_BYTES
        if length > 0:
            position += length
            client_id: str | None = str(frame[_START_BYTES:position], "utf-8")
        elif length >= -1:
            client_id = None if length else ""
        else:
            raise WireError(f"client id has the length {length}")
        if version >= flexible_from:
            count = frame[position]
            position += 1
            if count:
                position = skip_tags(frame, position, count, limits, ())
        if position > len(frame):
            raise WireError("request header ends early")
    except (struct.error, IndexError, ValueError) as error:
        raise WireError(f"request header: {error}") from error
    if not is_known:
        # A later version of ApiVersions gets an answer, but its header must be one all the same.
        raise UnsupportedVersion(key, version, correlation_id)
    return _make((key, version, correlation_id, client_id)), position


def _make(values: tuple[int, int, int, str | None]) -> RequestHeader:
    # Half the cost of calling the class.
    return tuple.__new__(RequestHeader, values)


def encode_request_header(header: RequestHeader) -> bytes:
    """Write the header of a request, as a client does.

    Raises:
        WireError: a value does not fit.
    """
    key, version, correlation_id, client_id = header
    tags = b"\0" if is_flexible(key, version) else b""
    try:
        name = b"" if client_id is None else client_id.encode()
        length = -1 if client_id is None else len(name)
        return _pack_start(key, version, correlation_id, length) + name + tags
    except (struct.error, UnicodeEncodeError) as error:
        raise WireError(f"request header: {error}") from error


def encode_response_start(
    api_key: int, api_version: int, correlation_id: int, body_bytes: int
) -> bytes:
    """Write the size of a whole response and its header, which stand before a body."""
    if api_version >= VERSION_BOUNDS[api_key][2] and api_key != API_VERSIONS_KEY:
        return _pack_flexible_response_start(5 + body_bytes, correlation_id)
    return _pack_response_start(4 + body_bytes, correlation_id)


def decode_response_header(
    api_key: int, api_version: int, frame: Data, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, int]:
    """Read the header of a response; give the correlation id and the offset of the body.

    Raises:
        WireError: the bytes are not a header.
    """
    data: Any = frame
    try:
        correlation_id = int.from_bytes(data[:4], "big", signed=True)
        position = 4
        if is_flexible(api_key, api_version) and api_key != API_VERSIONS_KEY:
            count = data[position]
            position += 1
            if count:
                position = skip_tags(data, position, count, limits, ())
    except IndexError as error:
        raise WireError(f"response header: {error}") from error
    if position > len(data):
        raise WireError("response header ends early")
    return correlation_id, position

"""Messages to bytes and back, fast: one compiled function for each message and version.

Functions are written and compiled when a message is first met in a version, and kept. What they
do is specified by construct_form.py, and tests hold the two equal for every message and version.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from klamm.wire.errors import WireError
from klamm.wire.fast_decoder import DecoderWriter
from klamm.wire.fast_encoder import EncoderWriter
from klamm.wire.limits import DEFAULT_LIMITS, Limits
from klamm.wire.schema import Message, RecordsSlice

M = TypeVar("M", bound=Message)
Data = bytes | bytearray | memoryview
Decoder = Callable[[Data, int, Limits], tuple[M, int]]
Encoder = Callable[[M, list[int]], list[RecordsSlice]]

_decoders: dict[tuple[type[Message], int], Decoder[Any]] = {}
_encoders: dict[tuple[type[Message], int], Encoder[Any]] = {}


def decode(
    cls: type[M], version: int, data: Data, limits: Limits = DEFAULT_LIMITS, offset: int = 0
) -> M:
    """Decode the message that fills the data from the offset to the end.

    Strings and bytes are copied out of the data; records are views of it.

    Raises:
        WireError: the bytes are not exactly one message of this version, or exceed the limits.
    """
    message, end = decoder_for(cls, version)(data, offset, limits)
    if end != len(data):
        raise WireError(f"{cls.__name__} v{version}: {len(data) - end} bytes are left over")
    return message


def encode(message: Message, version: int) -> bytes:
    """Encode a message; fields that this version lacks are left out.

    Raises:
        WireError: a value does not fit its field.
    """
    try:
        return b"".join(encoder_for(type(message), version)(message, []))
    except TypeError as error:
        raise WireError(f"{type(message).__name__} v{version}: {error}") from error


def encode_chunks(message: Message, version: int) -> list[RecordsSlice]:
    """Encode a message into chunks, with the objects of records fields uncopied among them.

    Anything with a length may stand in a records field; empty ones leave no chunk.

    Raises:
        WireError: a value does not fit its field.
    """
    cuts: list[int] = []
    parts = encoder_for(type(message), version)(message, cuts)
    chunks: list[RecordsSlice] = []
    start = 0
    for cut in cuts:
        chunks.append(b"".join(parts[start:cut]))
        chunks.append(parts[cut])
        start = cut + 1
    if start < len(parts):
        chunks.append(b"".join(parts[start:]))
    return chunks


def decoder_for(cls: type[M], version: int) -> Decoder[M]:
    """Give the compiled decoder `(data, offset, limits) -> (message, end)`, made once.

    Raises:
        WireError: the message has no such version.
    """
    decoder = _decoders.get((cls, version))
    if decoder is None:
        _check_version(cls, version)
        writer = DecoderWriter(cls, version)
        decoder = _compile(writer.source(), writer.names, "decode", cls, version)
        _decoders[cls, version] = decoder
    return decoder


def encoder_for(cls: type[M], version: int) -> Encoder[M]:
    """Give the compiled encoder `(message, cuts) -> parts`, made once.

    The encoder adds to cuts the index in parts of every records object that is not empty.

    Raises:
        WireError: the message has no such version.
    """
    encoder = _encoders.get((cls, version))
    if encoder is None:
        _check_version(cls, version)
        writer = EncoderWriter(cls, version)
        encoder = _compile(writer.source(), writer.names, "encode", cls, version)
        _encoders[cls, version] = encoder
    return encoder


def _check_version(cls: type[Message], version: int) -> None:
    if version not in cls.VERSIONS:
        raise WireError(f"{cls.__name__} has no version {version}")


def _compile(
    source: str, names: dict[str, Any], function: str, cls: type[Message], version: int
) -> Any:
    code = compile(source, f"<{function} {cls.__name__} v{version}>", "exec")
    exec(code, names)
    return names[function]

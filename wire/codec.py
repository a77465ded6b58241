"""Messages to bytes and back, fast: one compiled function for each message and version.

Functions are written and compiled when a message is first met in a version, and kept. What they
do is specified by construct_form.py, and tests hold the two equal for every message and version.

A message may have tens of thousands of items, and then takes longer than anybody should have to
wait: `decode_in_steps` and `encode_in_steps` are generators, compiled from the same source, that
yield before every item.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from klamm.wire.errors import WireError
from klamm.wire.fast_decoder import DecoderWriter
from klamm.wire.fast_encoder import EncoderWriter
from klamm.wire.limits import DEFAULT_LIMITS, Limits
from klamm.wire.schema import Message, RecordsSlice

M = TypeVar("M", bound=Message)
Data = bytes | bytearray | memoryview
Decoder = Callable[[Data, int, Limits], tuple[M, int]]
Encoder = Callable[[M, list[RecordsSlice], list[int]], None]
StepDecoder = Callable[[Data, int, Limits], Generator[None, None, tuple[M, int]]]
StepEncoder = Callable[[M, list[RecordsSlice], list[int]], Generator[None, None, None]]

_decoders: dict[tuple[type[Message], int], Decoder[Any]] = {}
_encoders: dict[tuple[type[Message], int], Encoder[Any]] = {}
_step_decoders: dict[tuple[type[Message], int], StepDecoder[Any]] = {}
_step_encoders: dict[tuple[type[Message], int], StepEncoder[Any]] = {}

# Parts of a message that are put together at a time, where it is encoded in steps.
PARTS_MAX = 4096


def decode(
    cls: type[M],
    version: int,
    data: Data,
    limits: Limits = DEFAULT_LIMITS,
    offset: int = 0,
    *,
    exact: bool = True,
) -> M:
    """Decode the message that fills the data from the offset to the end.

    Strings and bytes are copied out of the data; records are views of it.

    Args:
        exact: False passes over bytes behind the message.

    Raises:
        WireError: the bytes are not exactly one message of this version.
        LimitExceeded: they may be, but exceed the limits.
    """
    message, end = decoder_for(cls, version)(data, offset, limits)
    if exact and end != len(data):
        raise _left_over(cls, version, len(data) - end)
    return message


def decode_in_steps(
    cls: type[M],
    version: int,
    data: Data,
    limits: Limits = DEFAULT_LIMITS,
    offset: int = 0,
    *,
    exact: bool = True,
) -> Generator[None, None, M]:
    """Do what decode does, and return the message at the end of the steps."""
    message, end = yield from _step_decoder_for(cls, version)(data, offset, limits)
    if exact and end != len(data):
        raise _left_over(cls, version, len(data) - end)
    return message


def _left_over(cls: type[Message], version: int, size: int) -> WireError:
    return WireError(f"{cls.__name__} v{version}: {size} bytes are left over")


def encode(message: Message, version: int) -> bytes:
    """Encode a message; fields that this version lacks are left out.

    Raises:
        WireError: a value does not fit its field.
    """
    parts: list[Any] = []
    encoder_for(type(message), version)(message, parts, [])
    try:
        return b"".join(parts)
    except TypeError as error:
        raise WireError(f"{type(message).__name__} v{version}: {error}") from error


def encode_chunks(message: Message, version: int) -> list[RecordsSlice]:
    """Encode a message into chunks, with the objects of records fields uncopied among them.

    Anything with a length may stand in a records field; empty ones leave no chunk.

    Raises:
        WireError: a value does not fit its field.
    """
    cuts: list[int] = []
    parts: list[Any] = []
    encoder_for(type(message), version)(message, parts, cuts)
    if not cuts:
        return [b"".join(parts)] if parts else []
    chunks: list[RecordsSlice] = []
    _join_parts(parts, cuts, chunks)
    return chunks


def encode_in_steps(message: Message, version: int) -> Generator[None, None, list[RecordsSlice]]:
    """Do what encode_chunks does, and return the chunks, more of them, at the end of the steps."""
    cuts: list[int] = []
    parts: list[Any] = []
    chunks: list[RecordsSlice] = []
    for _ in _step_encoder_for(type(message), version)(message, parts, cuts):
        if len(parts) >= PARTS_MAX:
            _join_parts(parts, cuts, chunks)
            cuts.clear()
            parts.clear()
        yield
    _join_parts(parts, cuts, chunks)
    return chunks


def _join_parts(parts: list[Any], cuts: list[int], chunks: list[RecordsSlice]) -> None:
    start = 0
    for cut in cuts:
        chunks.append(b"".join(parts[start:cut]))
        chunks.append(parts[cut])
        start = cut + 1
    if start < len(parts):
        chunks.append(b"".join(parts[start:]))


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
    """Give the compiled encoder `(message, parts, cuts)`, made once.

    The encoder adds the bytes to parts, and to cuts the index in parts of every records object
    that is not empty.

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


def _step_decoder_for(cls: type[M], version: int) -> StepDecoder[M]:
    decoder = _step_decoders.get((cls, version))
    if decoder is None:
        _check_version(cls, version)
        writer = DecoderWriter(cls, version, in_steps=True)
        decoder = _compile(writer.source(), writer.names, "decode", cls, version)
        _step_decoders[cls, version] = decoder
    return decoder


def _step_encoder_for(cls: type[M], version: int) -> StepEncoder[M]:
    encoder = _step_encoders.get((cls, version))
    if encoder is None:
        _check_version(cls, version)
        writer = EncoderWriter(cls, version, in_steps=True)
        encoder = _compile(writer.source(), writer.names, "encode", cls, version)
        _step_encoders[cls, version] = encoder
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

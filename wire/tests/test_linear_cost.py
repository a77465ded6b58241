"""Decoding takes steps and memory in proportion to the bytes, whoever composed them.

Each array of each message is flooded with the smallest items there are: they become the
most objects for the fewest bytes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from klamm.wire import codec, construct_form
from klamm.wire.layout import layout_of
from klamm.wire.limits import DEFAULT_LIMITS
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.stored.metadata import NoOpRecord
from klamm.wire.schema import Message, Primitive, Struct, records
from klamm.wire.tests.catalog import every_message_and_version
from klamm.wire.tests.cost import peak_of, steps_of

ITEMS = 200
FILL_BYTES = 2000
FILLS = (0x00, 0x01, 0x02, 0x03, 0x09, 0x7F, 0x80, 0xFF)

STEPS_PER_BYTE_MAX = 12
MEMORY_PER_BYTE_MAX = 80
# What a decoder costs before its first byte: the frame of the call, the error it raises.
STEPS_BASE = 200
MEMORY_BASE = 8 * 1024


def with_only(cls: type[Struct], **values: Any) -> Any:
    """Give a struct of defaults but for these values, and empty records instead of null ones."""
    return cls(**{f.name: b"" for f in cls.FIELDS if f.kind is records} | values)


def floods(cls: type[Struct], version: int) -> Iterator[Any]:
    """Give the struct once for each array below it, with many empty items in that array."""
    layout = layout_of(cls, version)
    for declared in (*layout.plain, *layout.tagged):
        name, kind = declared.name, declared.kind
        if isinstance(kind, Primitive):
            if declared.is_array:
                yield with_only(cls, **{name: [kind.default] * ITEMS})
            continue
        if declared.is_array:
            yield with_only(cls, **{name: [with_only(kind) for _ in range(ITEMS)]})
        for inner in floods(kind, version):
            yield with_only(cls, **{name: [inner] if declared.is_array else inner})


@every_message_and_version
def test_steps_and_memory_are_linear_in_the_bytes(cls: type[Message], version: int) -> None:
    codec.decoder_for(cls, version)
    inputs = [bytes([fill]) * FILL_BYTES for fill in FILLS]
    inputs += [codec.encode(flood, version) for flood in floods(cls, version)]
    for data in inputs:

        def decode(data: bytes = data) -> object:
            return codec.decode(cls, version, data)

        assert steps_of(decode) <= STEPS_BASE + STEPS_PER_BYTE_MAX * len(data), data[:100]
        assert peak_of(decode) <= MEMORY_BASE + MEMORY_PER_BYTE_MAX * len(data), data[:100]


@pytest.mark.parametrize("decode", [codec.decode, construct_form.decode])
def test_a_refused_flood_costs_nothing_but_a_copy(decode: Callable[..., object]) -> None:
    items = DEFAULT_LIMITS.array_items_max + 1
    flood = items.to_bytes(4, "big") + bytes(2 * items)
    decode(MetadataRequest, 0, bytes(4))
    assert steps_of(lambda: decode(MetadataRequest, 0, flood)) <= STEPS_BASE
    assert peak_of(lambda: decode(MetadataRequest, 0, flood)) <= len(flood) + MEMORY_BASE


@pytest.mark.parametrize("decode", [codec.decode, construct_form.decode])
def test_skipped_tagged_fields_are_not_kept(decode: Callable[..., object]) -> None:
    count = DEFAULT_LIMITS.tagged_fields_max
    flood = b"\x80\x02" + (b"\x05\xe8\x07" + bytes(1000)) * count
    assert decode(NoOpRecord, 0, flood) == NoOpRecord()
    assert peak_of(lambda: decode(NoOpRecord, 0, flood)) <= len(flood) + MEMORY_BASE

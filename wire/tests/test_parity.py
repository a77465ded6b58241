"""The fast codec and the construct form are the same function, for every message and version."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from klamm.wire import codec, construct_form
from klamm.wire.errors import WireError
from klamm.wire.schema import Message
from klamm.wire.tests.catalog import every_message, every_message_and_version, versions_of
from klamm.wire.tests.samples import full_message, sparse_message
from klamm.wire.tests.values import messages, same, some_examples


@every_message_and_version
@some_examples(40)
@given(data=st.data())
def test_both_write_the_same_bytes_and_read_the_same_value(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    message = data.draw(messages(cls, version))
    encoded = codec.encode(message, version)
    assert construct_form.encode(message, version) == encoded
    assert codec.decode(cls, version, encoded) == message
    assert construct_form.decode(cls, version, encoded) == message


# Bytes that change meaning: null, empty, one, the last short varint, continuations, negative.
TELLING = st.sampled_from([b"\x00", b"\x01", b"\x02", b"\x7f", b"\x80", b"\xff", b"\x80\x00"])
# Where, how many bytes are taken out, what is put in their place.
DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 2**16), st.sampled_from([0, 1, 1, 2, 2**16]), TELLING | st.binary(max_size=4)
    ),
    min_size=1,
    max_size=2,
)


def damaged(encoded: bytes, damage: list[tuple[int, int, bytes]]) -> bytes:
    result = bytearray(encoded)
    for place, removed, inserted in damage:
        position = place % (len(result) + 1)
        result[position : position + removed] = inserted
    return bytes(result)


@every_message
@some_examples(20)
@given(damage=DAMAGE)
def test_both_take_or_refuse_the_same_damaged_bytes(
    cls: type[Message], damage: list[tuple[int, int, bytes]]
) -> None:
    for version in versions_of(cls):
        for message in (full_message(cls, version), sparse_message(cls, version)):
            hostile = damaged(codec.encode(message, version), damage)
            assert same(
                value_or_refusal(codec.decode, cls, version, hostile),
                value_or_refusal(construct_form.decode, cls, version, hostile),
            ), f"v{version}: {hostile.hex()}"


def value_or_refusal(
    decode: Callable[[type[Message], int, bytes], Message],
    cls: type[Message],
    version: int,
    data: bytes,
) -> Message | None:
    try:
        return decode(cls, version, data)
    except WireError:
        return None

"""A message that ends early is refused, wherever it ends; so is one with something behind it."""

import pytest

from klamm.wire import codec, construct_form
from klamm.wire.errors import WireError
from klamm.wire.limits import DEFAULT_LIMITS
from klamm.wire.schema import Message
from klamm.wire.tests.catalog import every_message_and_version
from klamm.wire.tests.samples import full_message, sparse_message


@every_message_and_version
def test_only_the_whole_message_is_taken(cls: type[Message], version: int) -> None:
    for message in (full_message(cls, version), sparse_message(cls, version)):
        encoded = codec.encode(message, version)
        decoder = codec.decoder_for(cls, version)
        assert decoder(encoded, 0, DEFAULT_LIMITS) == (message, len(encoded))
        for end in range(len(encoded)):
            with pytest.raises(WireError):
                decoder(encoded[:end], 0, DEFAULT_LIMITS)
        with pytest.raises(WireError, match="1 bytes are left over"):
            codec.decode(cls, version, encoded + b"\x00")


@every_message_and_version
def test_only_the_whole_message_is_taken_by_the_construct_form(
    cls: type[Message], version: int
) -> None:
    encoded = codec.encode(full_message(cls, version), version)
    for end in {len(encoded) // 2, len(encoded) - 1} - {len(encoded), -1}:
        with pytest.raises(WireError):
            construct_form.decode(cls, version, encoded[:end])
    with pytest.raises(WireError, match="1 bytes are left over"):
        construct_form.decode(cls, version, encoded + b"\x00")

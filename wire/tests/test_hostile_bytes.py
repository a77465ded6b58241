"""Whatever the bytes, a decoder gives a value or raises WireError."""

from random import Random
from types import ModuleType

import pytest

from klamm.wire import codec, construct_form
from klamm.wire.errors import WireError
from klamm.wire.limits import Limits
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.fetch import FetchRequest, FetchResponse
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.produce import ProduceRequest, ProduceResponse
from klamm.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from klamm.wire.messages.stored.metadata import BeginTransactionRecord, NoOpRecord, TopicRecord
from klamm.wire.schema import Message
from klamm.wire.tests.catalog import every_message_and_version
from klamm.wire.tests.samples import full_message
from klamm.wire.tests.values import same

ENDLESS = b"\xff" * 5000
HUGE = b"\x7f\xff\xff\xff"
NEGATIVE = b"\x80\x00\x00\x00"
# The largest length that a compact field can claim.
COMPACT_HUGE = b"\xff\xff\xff\xff\x07"

NULL = "must not be null"
LENGTH = "has the length -"
TEXT = "can't decode byte"
VARINT = "varint is longer than five bytes"
COUNT = "more than the bytes left can hold"
EARLY = "ends early|index out of range"

# The message, its version, the bytes, and what the fast codec has against them.
HOSTILE: dict[str, tuple[type[Message], int, bytes, str]] = {
    "string that must not be null": (FindCoordinatorRequest, 0, b"\xff\xff", LENGTH),
    "string of length -2": (FindCoordinatorRequest, 0, b"\xff\xfe", LENGTH),
    "nullable string of length -2": (ProduceRequest, 3, b"\xff\xfe" + bytes(10), LENGTH),
    "string longer than the bytes": (FindCoordinatorRequest, 0, b"\x7f\xffabc", EARLY),
    "string with half a character": (FindCoordinatorRequest, 0, b"\x00\x01\xc3", TEXT),
    "string with a surrogate": (FindCoordinatorRequest, 0, b"\x00\x03\xed\xa0\x80", TEXT),
    "string with an overlong slash": (FindCoordinatorRequest, 0, b"\x00\x02\xc0\xaf", TEXT),
    "compact string that must not be null": (ApiVersionsRequest, 3, b"\x00\x01\x00", NULL),
    "compact string of 32768 bytes": (
        ApiVersionsRequest,
        3,
        b"\x81\x80\x02" + b"x" * 0x8000 + b"\x01\x00",
        "string of 32768 bytes is too long",
    ),
    "compact string without an end": (
        ApiVersionsRequest,
        3,
        COMPACT_HUGE + b"x",
        "string of 2147483646 bytes is too long",
    ),
    "varint of 32 bits": (
        ApiVersionsRequest,
        3,
        b"\x80\x80\x80\x80\x08\x01\x00",
        "varint 2147483648 is out of range",
    ),
    "varint of six bytes": (
        ApiVersionsRequest,
        3,
        b"\x80\x80\x80\x80\x80\x00\x01\x00",
        VARINT,
    ),
    "endless length": (ApiVersionsRequest, 3, ENDLESS, VARINT),
    "endless count": (MetadataRequest, 9, ENDLESS, VARINT),
    "endless number of tags": (ApiVersionsRequest, 3, b"\x01\x01" + ENDLESS, VARINT),
    "endless tag": (ApiVersionsRequest, 3, b"\x01\x01\x01" + ENDLESS, VARINT),
    "endless size of a tag": (ApiVersionsRequest, 3, b"\x01\x01\x01\x00" + ENDLESS, VARINT),
    "bytes that must not be null": (SaslAuthenticateRequest, 0, b"\xff" * 4, LENGTH),
    "bytes of negative length": (SaslAuthenticateRequest, 0, NEGATIVE + bytes(8), LENGTH),
    "bytes longer than the message": (SaslAuthenticateRequest, 0, HUGE + bytes(8), EARLY),
    "compact bytes longer than the message": (
        SaslAuthenticateRequest,
        2,
        COMPACT_HUGE + bytes(8),
        EARLY,
    ),
    "array that must not be null": (MetadataRequest, 0, b"\xff" * 4, LENGTH),
    "nullable array of length -2": (MetadataRequest, 1, b"\xff\xff\xff\xfe", LENGTH),
    "array of negative length": (MetadataRequest, 0, NEGATIVE + bytes(8), LENGTH),
    "count without bytes behind it": (MetadataRequest, 0, HUGE + bytes(8), COUNT),
    "compact count without bytes": (MetadataRequest, 9, COMPACT_HUGE + bytes(8), COUNT),
    "count that the bytes almost hold": (
        MetadataRequest,
        0,
        b"\x00\x00\x00\x05" + bytes(9),
        COUNT,
    ),
    "tags without bytes": (NoOpRecord, 0, COMPACT_HUGE, "2147483647 tagged fields are too many"),
    "tag longer than the message": (NoOpRecord, 0, b"\x01\x00" + COMPACT_HUGE, EARLY),
    "known tag that does not fill its size": (
        FetchRequest,
        12,
        bytes(25) + b"\x01\x01\x01" + b"\x01\x00\x03\x02xy",
        "tagged field 0 does not fill its size",
    ),
    "tag of a later version": (
        FetchRequest,
        12,
        bytes(25) + b"\x01\x01\x01" + b"\x01\x01\x00",
        "tag 1 does not exist in this version",
    ),
    "tag of a later version where this one has none": (
        ProduceResponse,
        9,
        b"\x01" + bytes(4) + b"\x01\x00\x00",
        "tag 0 does not exist in this version",
    ),
    "records longer than the message": (
        FetchResponse,
        4,
        bytes(4) + b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01" + bytes(22) + b"\xff" * 4 + HUGE,
        EARLY,
    ),
}


@pytest.mark.parametrize(("cls", "version", "data", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_both_forms_refuse(cls: type[Message], version: int, data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=f"^{cls.__name__} v{version}.*({reason})"):
        codec.decode(cls, version, data)
    with pytest.raises(WireError, match=f"^{cls.__name__} v{version}"):
        construct_form.decode(cls, version, data)


# A record that knows no tag, and one that knows tag 0.
@pytest.mark.parametrize("cls", [NoOpRecord, BeginTransactionRecord])
@pytest.mark.parametrize("form", [codec, construct_form])
def test_as_many_tagged_fields_as_the_limit_are_skipped_and_one_more_is_refused(
    form: ModuleType, cls: type[Message]
) -> None:
    limits = Limits(tagged_fields_max=300)
    tag = b"\x7f\x01x"
    assert form.decode(cls, 0, b"\xac\x02" + tag * 300, limits) == cls()
    with pytest.raises(WireError, match="301 tagged fields are too many"):
        form.decode(cls, 0, b"\xad\x02" + tag * 301, limits)


@pytest.mark.parametrize("form", [codec, construct_form])
def test_the_items_of_all_arrays_together_are_limited(form: ModuleType) -> None:
    request = full_message(FetchRequest, 12)
    assert sum(len(topic.partitions) + 1 for topic in request.topics) == 6
    assert sum(len(topic.partitions) + 1 for topic in request.forgotten_topics_data) == 6
    encoded = codec.encode(request, 12)
    assert form.decode(FetchRequest, 12, encoded, Limits(array_items_max=12)) == request
    with pytest.raises(WireError, match="budget of array items"):
        form.decode(FetchRequest, 12, encoded, Limits(array_items_max=11))


def test_the_default_limits_refuse_floods() -> None:
    flood = b"\x02\x00" * 200_000
    with pytest.raises(WireError, match="tagged fields are too many"):
        codec.decode(TopicRecord, 0, b"\x01" + bytes(16) + b"\xc0\x9a\x0c" + flood)
    with pytest.raises(WireError, match="budget of array items"):
        codec.decode(MetadataRequest, 0, b"\x00\x03\x0d\x40" + bytes(400_000))


def value_or_refusal(cls: type[Message], version: int, data: bytes) -> None:
    """Decode, and if it is a value, see that it survives being encoded and decoded again."""
    try:
        message = codec.decode(cls, version, data)
    except WireError:
        return
    except BaseException as error:
        error.add_note(f"{cls.__name__} v{version} from {data.hex()}")
        raise
    again = codec.decode(cls, version, codec.encode(message, version))
    assert same(again, message), data.hex()


@every_message_and_version
def test_hostile_bytes_at_every_place_of_a_message(cls: type[Message], version: int) -> None:
    encoded = codec.encode(full_message(cls, version), version)
    for place in range(len(encoded) + 1):
        before = encoded[:place]
        value_or_refusal(cls, version, before + HUGE + encoded[place + len(HUGE) :])
        value_or_refusal(cls, version, before + b"\xff\xff\xff\xff\xff" + encoded[place:])


@every_message_and_version
def test_random_bytes(cls: type[Message], version: int) -> None:
    random = Random(f"{cls.__name__} {version}")
    for _ in range(20):
        value_or_refusal(cls, version, random.randbytes(random.randrange(100)))
        # Mostly small numbers, which get further into a message than even ones do.
        small = bytes(random.choice((0, 0, 0, 1, 1, 2, 3, 127, 128, 255)) for _ in range(60))
        value_or_refusal(cls, version, small)

"""The codec in steps is the same codec, and no step of it does more than one item."""

from collections.abc import Generator
from typing import TypeVar

import pytest

from klamm.wire import codec
from klamm.wire.errors import LimitExceeded, WireError
from klamm.wire.limits import Limits
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.schema import Message
from klamm.wire.tests.catalog import every_message_and_version
from klamm.wire.tests.samples import full_message, sparse_message

Result = TypeVar("Result")


def run(steps: Generator[None, None, Result]) -> tuple[int, Result]:
    """How many steps it took, and what came of them."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1


@every_message_and_version
def test_steps_read_and_write_the_same(cls: type[Message], version: int) -> None:
    for message in (full_message(cls, version), sparse_message(cls, version)):
        encoded = codec.encode(message, version)
        assert run(codec.decode_in_steps(cls, version, encoded))[1] == message
        assert (
            run(codec.decode_in_steps(cls, version, memoryview(b"\xff" + encoded), offset=1))[1]
            == message
        )
        chunks = codec.encode_chunks(message, version)
        assert run(codec.encode_in_steps(message, version))[1] == chunks


@every_message_and_version
def test_steps_refuse_the_same(cls: type[Message], version: int) -> None:
    encoded = codec.encode(full_message(cls, version), version)
    too_short = [encoded[:-1]] if len(encoded) > 1 else []
    for hostile in (encoded + b"\0", *too_short):
        with pytest.raises(WireError) as plain:
            codec.decode(cls, version, hostile)
        with pytest.raises(WireError) as stepwise:
            run(codec.decode_in_steps(cls, version, hostile))
        assert str(stepwise.value) == str(plain.value)


def test_every_item_is_a_step() -> None:
    structs = MetadataRequest(topics=[MetadataRequestTopic(name="x")] * 1000)
    strings = DeleteTopicsRequest(topic_names=["x"] * 1000)
    for message, version in ((structs, 12), (strings, 5)):
        encoded = codec.encode(message, version)
        assert run(codec.decode_in_steps(type(message), version, encoded))[0] > 1000
        assert run(codec.encode_in_steps(message, version))[0] > 1000


class FileRange:
    """Stands for a range of a file: all the codec may know of it is its length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def test_parts_are_put_together_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records stay where they are among them."""
    monkeypatch.setattr(codec, "PARTS_MAX", 5)
    ranges = [FileRange(index) for index in range(50)]
    partitions = [PartitionData(partition_index=each.length, records=each) for each in ranges]
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    chunks = run(codec.encode_in_steps(message, 12))[1]
    assert [each for each in chunks if isinstance(each, FileRange)] == ranges[1:]
    plain = codec.encode_chunks(message, 12)
    assert len(chunks) > len(plain)
    assert spelled_out(chunks) == spelled_out(plain)


def spelled_out(chunks: list[object]) -> bytes:
    return b"".join(
        each if isinstance(each, bytes) else f"<{len(each)}>".encode() for each in chunks
    )


def test_what_exceeds_the_limits_is_told_from_what_is_malformed() -> None:
    encoded = codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="x")] * 10), 12)
    with pytest.raises(LimitExceeded, match=r"^MetadataRequest v12: topics brings the message"):
        codec.decode(MetadataRequest, 12, encoded, Limits(array_items_max=9))
    tags = encoded[:-1] + b"\x03" + b"\x09\x00\x0a\x00\x0b\x00"
    assert codec.decode(MetadataRequest, 12, tags, Limits(tagged_fields_max=3))
    with pytest.raises(LimitExceeded, match=r"^MetadataRequest v12: 3 tagged fields"):
        codec.decode(MetadataRequest, 12, tags, Limits(tagged_fields_max=2))
    with pytest.raises(WireError) as malformed:
        codec.decode(MetadataRequest, 12, encoded[:-1])
    assert not isinstance(malformed.value, LimitExceeded)

"""What callers of the codec may rely on beyond equality with the construct form."""

import pytest

from klamm.wire import codec
from klamm.wire.errors import WireError
from klamm.wire.limits import DEFAULT_LIMITS
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.produce import ProduceRequest
from klamm.wire.schema import Message
from klamm.wire.tests.catalog import every_message_and_version
from klamm.wire.tests.samples import full_message


@every_message_and_version
def test_any_kind_of_buffer_reads_the_same_from_any_offset(
    cls: type[Message], version: int
) -> None:
    message = full_message(cls, version)
    encoded = codec.encode(message, version)
    shifted = b"\xff\xff\xff" + encoded
    assert codec.decode(cls, version, bytearray(encoded)) == message
    assert codec.decode(cls, version, memoryview(bytearray(encoded))) == message
    assert codec.decode(cls, version, shifted, offset=3) == message
    assert codec.decode(cls, version, memoryview(shifted), offset=3) == message


def test_a_decoder_says_where_the_message_ends() -> None:
    message = full_message(MetadataRequest, 12)
    encoded = codec.encode(message, 12)
    decoder = codec.decoder_for(MetadataRequest, 12)
    assert decoder(b"\x00" + encoded + b"rest", 1, DEFAULT_LIMITS) == (message, 1 + len(encoded))
    assert codec.decoder_for(MetadataRequest, 12) is decoder


@pytest.mark.parametrize("version", [-1, 14, 32767])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(WireError, match=f"MetadataRequest has no version {version}"):
        codec.decode(MetadataRequest, version, b"")
    with pytest.raises(WireError, match=f"MetadataRequest has no version {version}"):
        codec.encode(MetadataRequest(), version)


def test_decoded_records_are_views_of_the_frame() -> None:
    encoded = codec.encode(full_message(ProduceRequest, 9), 9)
    request = codec.decode(ProduceRequest, 9, encoded)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is encoded


class FileRange:
    """Stands for a range of a file: all the codec may know of it is its length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def response_of(*records: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=i, records=r) for i, r in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_chunks_pass_records_on_without_touching_them(version: int) -> None:
    first, second = FileRange(300), FileRange(5)
    chunks = codec.encode_chunks(response_of(first, None, b"", second), version)
    assert [chunk for chunk in chunks if isinstance(chunk, FileRange)] == [first, second]
    # No two chunks of bytes in a row, so that a reply is as few writes as can be.
    kinds = [type(chunk) for chunk in chunks]
    assert kinds == [bytes, FileRange, bytes, FileRange, bytes][: len(kinds)]
    filled = [b"\xab" * len(c) if isinstance(c, FileRange) else c for c in chunks]
    expected = codec.encode(response_of(b"\xab" * 300, None, b"", b"\xab" * 5), version)
    assert b"".join(filled) == expected


def test_a_message_without_records_is_one_chunk() -> None:
    message = full_message(MetadataRequest, 12)
    assert codec.encode_chunks(message, 12) == [codec.encode(message, 12)]


def test_records_that_are_not_bytes_cannot_be_joined() -> None:
    with pytest.raises(WireError, match="FetchResponse v12"):
        codec.encode(response_of(FileRange(3)), 12)

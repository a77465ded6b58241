"""The specification says what the protocol says: bytes written out by hand, field by field."""

import ast
from pathlib import Path
from uuid import UUID

import construct
import pytest

from klamm import wire
from klamm.wire import codec, construct_form
from klamm.wire.errors import WireError
from klamm.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from klamm.wire.messages.header import RequestHeader, ResponseHeader
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from klamm.wire.messages.stored.consumer_group import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from klamm.wire.primitives import Array, ItemBudget
from klamm.wire.schema import Message

KNOWN: dict[str, tuple[Message, int, str]] = {
    "arrays and strings with fixed lengths": (
        MetadataRequest(topics=[MetadataRequestTopic(name="ab"), MetadataRequestTopic(name="ü")]),
        0,
        # count, then a length and the bytes of each name
        "00000002 0002 6162 0002 c3bc",
    ),
    "a null array with a fixed length": (MetadataRequest(topics=None), 1, "ffffffff"),
    "compact arrays and strings, and an empty tagged section in each struct": (
        MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=UUID(int=7), name=None)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        12,
        # count + 1, the id, null, no tags; two flags; no tags
        "02 00000000000000000000000000000007 00 00  00 01 00",
    ),
    "a null compact array": (MetadataRequest(topics=None), 9, "00 01 00 00 00"),
    "records with a fixed length": (
        ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=30000,
            topic_data=[
                TopicProduceData(
                    name="t",
                    partition_data=[
                        PartitionProduceData(index=3, records=b"\xca\xfe"),
                        PartitionProduceData(index=4, records=None),
                    ],
                )
            ],
        ),
        3,
        "ffff ffff 00007530 00000001 0001 74 0000000200000003 00000002 cafe  00000004 ffffffff",
    ),
    "tagged fields in ascending order, those at their default left out": (
        FetchRequest(
            cluster_id="c",
            replica_state=ReplicaState(replica_id=1, replica_epoch=2),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1024,
            session_id=9,
            session_epoch=0,
            topics=[
                FetchTopic(
                    topic_id=UUID(int=1),
                    partitions=[FetchPartition(partition=5, fetch_offset=6, partition_max_bytes=7)],
                )
            ],
        ),
        15,
        "000001f4 00000001 00000400 00 00000009 00000000"
        "02 00000000000000000000000000000001"
        "02 00000005 ffffffff 0000000000000006 ffffffff ffffffffffffffff 00000007 00"
        "00 01 01"
        # two tags: 0 of two bytes, the string; 1 of 13 bytes, the struct with no tags of its own
        "02  00 02 02 63  01 0d 00000001 0000000000000002 00",
    ),
    "a struct that is there": (
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="t")],
            response_partition_limit=1,
            cursor=Cursor(topic_name="t", partition_index=2),
        ),
        0,
        "02 02 74 00  00000001  01 02 74 00000002 00  00",
    ),
    "a struct that is null": (
        DescribeTopicPartitionsRequest(cursor=None, response_partition_limit=1),
        0,
        "01 00000001 ff 00",
    ),
    "a tagged struct that is there": (
        ConsumerGroupMemberMetadataValue(
            classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=1)
        ),
        0,
        "0101 0101 01 01 ffffffff 01  01 00 07 01 00000001 01 00",
    ),
    "a tagged struct that is null though its default is not": (
        ConsumerGroupMemberMetadataValue(classic_member_metadata=None),
        0,
        "0101 0101 01 01 ffffffff 01  01 00 01 00",
    ),
    "a client id with a fixed length in the flexible header": (
        RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="me"),
        2,
        "0012 0003 00000007 0002 6d65 00",
    ),
    "a response header": (ResponseHeader(correlation_id=7), 1, "00000007 00"),
}


@pytest.mark.parametrize(("message", "version", "text"), KNOWN.values(), ids=KNOWN)
def test_known_bytes(message: Message, version: int, text: str) -> None:
    encoded = bytes.fromhex(text)
    assert construct_form.encode(message, version) == encoded
    assert construct_form.decode(type(message), version, encoded) == message
    assert codec.encode(message, version) == encoded
    assert codec.decode(type(message), version, encoded) == message


def test_a_marker_of_several_bytes_is_one_varint() -> None:
    """Nobody writes it so, but Kafka reads it so, and the fast codec must not differ."""
    text = "0101 0101 01 01 ffffffff 01  01 00 08 8100 00000001 01 00"
    for form in (codec, construct_form):
        value = form.decode(ConsumerGroupMemberMetadataValue, 0, bytes.fromhex(text))
        assert value.classic_member_metadata == ClassicMemberMetadata(session_timeout_ms=1)


def test_there_is_no_form_of_a_version_that_does_not_exist() -> None:
    with pytest.raises(WireError, match="ResponseHeader has no version 2"):
        construct_form.form_of(ResponseHeader, 2)


def test_items_without_any_bytes_cannot_be_repeated_without_end() -> None:
    """construct's own array makes a hundred thousand empty items of these four bytes."""
    array = Array(construct.Int32sb, construct.Struct(), item_bytes_min=1, nullable=False)
    with pytest.raises(construct.RangeError, match="more than the bytes left can hold"):
        array.parse(b"\x00\x01\x86\xa0", budget=ItemBudget(10**9))


def test_the_parts_of_construct_that_believe_their_input_are_not_used() -> None:
    """VarInt reads without end, arrays believe their count, and compiled forms check nothing."""
    forbidden = {"VarInt", "ZigZag", "PrefixedArray", "GreedyRange", "RepeatUntil"}
    assert all(hasattr(construct, name) for name in forbidden)
    users = set()
    for path in Path(wire.__path__[0]).rglob("*.py"):
        if "tests" in path.parts:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        taken = {
            alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module == "construct"
            for alias in node.names
        }
        modules = {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert not taken & forbidden, path
        assert "construct" not in modules, f"{path} must name what it takes from construct"
        if taken:
            users.add(path.name)
            assert "compile" not in attributes, path
    assert users == {"construct_form.py", "primitives.py"}

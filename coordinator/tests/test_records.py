"""Coordinator records as bytes: what Kafka writes, what comes back, and what does not belong."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.records import (
    RECORD_TYPES,
    UnknownRecordTypeError,
    decode_coordinator_record,
    encode_coordinator_record,
)
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

TOPIC_ID = UUID(int=7)


def test_an_offset_is_stored_as_kafka_4_3_stores_it() -> None:
    record = CoordinatorRecord(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(
            offset=5, leader_epoch=1, metadata="m", commit_timestamp=9, topic_id=TOPIC_ID
        ),
        4,
    )
    key, value = encode_coordinator_record(record)
    assert key == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3"
    assert value == (
        b"\0\4"
        + (5).to_bytes(8, "big")
        + (1).to_bytes(4, "big")
        + b"\2m"
        + (9).to_bytes(8, "big")
        + b"\1\0\x10"
        + TOPIC_ID.bytes
    )
    assert decode_coordinator_record(key, value) == record


def test_a_group_is_stored_in_version_3() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol="range",
        leader="a",
        current_state_timestamp=11,
        members=[
            MemberMetadata(
                member_id="a",
                group_instance_id="i",
                client_id="c",
                client_host="/h",
                rebalance_timeout=1,
                session_timeout=2,
                subscription=b"s",
                assignment=b"x",
            )
        ],
    )
    record = CoordinatorRecord(GroupMetadataKey(group="g"), value, 3)
    key, stored = encode_coordinator_record(record)
    assert key == b"\0\2\0\1g"
    assert stored is not None
    assert stored[:2] == b"\0\3"
    assert decode_coordinator_record(key, stored) == record


@pytest.mark.parametrize("record_type", sorted(RECORD_TYPES))
def test_every_type_comes_back(record_type: int) -> None:
    key_type, value_type = RECORD_TYPES[record_type]
    assert key_type.API_KEY == value_type.API_KEY == record_type
    for version in range(value_type.VERSIONS.first, value_type.VERSIONS.last + 1):
        record = CoordinatorRecord(key_type(), value_type(), version)
        assert decode_coordinator_record(*encode_coordinator_record(record)) == record
    tombstone = CoordinatorRecord(key_type(), None)
    key, value = encode_coordinator_record(tombstone)
    assert value is None
    assert decode_coordinator_record(key, None) == tombstone


@pytest.mark.parametrize("record_type", [-1, 9, 10, 15, 17, 23, 99, 32767])
def test_a_type_of_somebody_else_is_left_alone(record_type: int) -> None:
    key = record_type.to_bytes(2, "big", signed=True) + b"whatever"
    with pytest.raises(UnknownRecordTypeError) as caught:
        decode_coordinator_record(key, b"\0\0")
    assert caught.value.record_type == record_type


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"", None),
        (b"\0", None),
        (b"\0\1\0", None),
        (b"\0\2\0\1g!", None),
        (b"\0\2\0\1g", b""),
        (b"\0\2\0\1g", b"\0"),
        (b"\0\2\0\1g", b"\0\x63"),
        (b"\0\2\0\1g", b"\0\3\0\1"),
    ],
)
def test_bytes_that_are_no_record_are_an_error(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(WireError):
        decode_coordinator_record(key, value)


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_one_of_the_two_errors(key: bytes, value: bytes | None) -> None:
    try:
        record = decode_coordinator_record(key, value)
    except (UnknownRecordTypeError, WireError):
        return
    assert (record.value is None) == (value is None)

"""What a classic group stores, and what it answers about its offsets."""

from __future__ import annotations

import pytest

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.member import ClassicMember, SupportedProtocol
from klamm.coordinator.classic.membership import select_protocol
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.classic.subscription import topics_of
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.tests.classic.script import consumer_metadata
from klamm.coordinator.tests.fakes import stored
from klamm.wire.codec import decode, encode
from klamm.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from klamm.wire.messages.stored.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

RANGE = SupportedProtocol("range", consumer_metadata("t1"))
STICKY = SupportedProtocol("sticky", consumer_metadata("t1"))


def member(
    name: str, *protocols: SupportedProtocol, instance_id: str | None = None
) -> ClassicMember:
    return ClassicMember(
        member_id=name,
        group_instance_id=instance_id,
        client_id=f"client of {name}",
        client_host="/10.0.0.1",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols or (RANGE,),
        assignment=name.upper().encode(),
    )


def record_of(*members: ClassicMember, timestamp: int | None = 7) -> CoordinatorRecord:
    group = ClassicGroup("g", protocol_type="consumer")
    return group.record(members, generation=3, protocol="range", leader="b", timestamp=timestamp)


def value_of(record: CoordinatorRecord) -> GroupMetadataValue:
    assert isinstance(record.value, GroupMetadataValue)
    return record.value


def test_the_record_has_everything_that_kafka_stores() -> None:
    record = record_of(member("a", STICKY, RANGE), member("b", instance_id="i"))
    assert record == CoordinatorRecord(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol="range",
            leader="b",
            current_state_timestamp=7,
            members=[
                MemberMetadata(
                    member_id="a",
                    group_instance_id=None,
                    client_id="client of a",
                    client_host="/10.0.0.1",
                    rebalance_timeout=60_000,
                    session_timeout=10_000,
                    subscription=RANGE.metadata,
                    assignment=b"A",
                ),
                MemberMetadata(
                    member_id="b",
                    group_instance_id="i",
                    client_id="client of b",
                    client_host="/10.0.0.1",
                    rebalance_timeout=60_000,
                    session_timeout=10_000,
                    subscription=RANGE.metadata,
                    assignment=b"B",
                ),
            ],
        ),
        value_version=3,
    )
    assert stored(record) == record


def test_a_record_makes_a_stable_group() -> None:
    group = ClassicGroup("g")
    group.replay(value_of(record_of(member("a"), member("b", instance_id="i"))))
    assert group.state is ClassicState.STABLE
    assert (group.generation, group.protocol, group.leader) == (3, "range", "b")
    assert group.members == {"a": member("a"), "b": member("b", instance_id="i")}
    assert group.static_members == {"i": "b"}
    assert group.subscribed_topics == frozenset({"t1"})
    assert group.describe() == DescribedGroup(
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedGroupMember(
                member_id="a",
                client_id="client of a",
                client_host="/10.0.0.1",
                member_metadata=RANGE.metadata,
                member_assignment=b"A",
            ),
            DescribedGroupMember(
                member_id="b",
                group_instance_id="i",
                client_id="client of b",
                client_host="/10.0.0.1",
                member_metadata=RANGE.metadata,
                member_assignment=b"B",
            ),
        ],
    )


def test_the_other_protocols_of_a_member_are_kept_while_it_says_the_same() -> None:
    group = ClassicGroup("g")
    group.put_member(member("a", STICKY, RANGE))
    group.put_member(member("b", SupportedProtocol("range", b"other"), STICKY))
    group.replay(value_of(record_of(member("a"), member("b"))))
    assert group.members["a"].protocols == (STICKY, RANGE)
    assert group.members["b"].protocols == (RANGE,)


def test_records_of_the_first_versions_have_no_timestamp_and_one_timeout() -> None:
    value = value_of(record_of(member("a")))
    group = ClassicGroup("g")
    group.replay(decode(GroupMetadataValue, 0, encode(value, 0)))
    assert group.current_state_timestamp is None
    assert group.members["a"].rebalance_timeout_ms == 10_000


def test_a_negative_rebalance_timeout_of_another_broker_is_none() -> None:
    value = value_of(record_of(member("a")))
    value.members[0].rebalance_timeout = -2
    group = ClassicGroup("g")
    group.replay(value)
    assert group.rebalance_timeout_ms == 0


def test_the_offsets_of_an_empty_group_expire_with_the_group() -> None:
    group = ClassicGroup("g")
    group.replay(value_of(record_of()))
    expiry = group.offsets_expire_after_ms(100)
    assert expiry is not None
    assert expiry(50) == 107


def test_without_a_timestamp_they_expire_by_their_commits() -> None:
    group = ClassicGroup("g")
    group.replay(value_of(record_of(timestamp=None)))
    expiry = group.offsets_expire_after_ms(100)
    assert expiry is not None
    assert expiry(50) == 150


def test_a_tombstone_removes_the_group() -> None:
    assert ClassicGroup("g").tombstones() == [CoordinatorRecord(GroupMetadataKey(group="g"), None)]


def test_a_protocol_needs_everybody() -> None:
    other = SupportedProtocol("other", b"")
    group = ClassicGroup("g")
    group.put_member(member("a", other, STICKY, RANGE))
    group.put_member(member("b", STICKY, RANGE))
    group.put_member(member("c", RANGE, STICKY))
    assert select_protocol(group.members.values()) == "sticky"
    assert group.has_common_protocol(["other", "range"])
    assert not group.has_common_protocol(["other"])
    group.drop_member("a")
    assert not group.has_common_protocol(["other"])
    group.put_member(member("b", RANGE))
    assert select_protocol(group.members.values()) == "range"
    assert not group.has_common_protocol(["sticky"])


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        ("range", "roundrobin"),
        ("sticky", "range"),
        ("range", "cooperative-sticky"),
        ("sticky", "roundrobin"),
        ("roundrobin", "cooperative-sticky"),
        ("sticky", "cooperative-sticky"),
        ("default", "sessioned"),
        ("compatible", "eager"),
    ],
)
def test_of_equally_many_votes_kafka_takes_what_a_hash_map_has_first(
    winner: str, loser: str
) -> None:
    """Seen with a HashMap of a JVM, whichever was put first."""
    first, second = SupportedProtocol(winner, b""), SupportedProtocol(loser, b"")
    members = [member("a", first, second), member("b", second, first)]
    assert select_protocol(members) == winner
    assert select_protocol(members[::-1]) == winner


def test_a_protocol_that_a_member_names_twice_is_not_what_all_have_in_common() -> None:
    group = ClassicGroup("g")
    group.put_member(member("a", RANGE, RANGE, STICKY))
    assert select_protocol(group.members.values()) == "sticky"
    assert not group.has_common_protocol(["range"])
    assert group.has_common_protocol(["sticky"])


def test_unless_there_is_no_other() -> None:
    assert select_protocol([member("a", RANGE, RANGE)]) == "range"
    assert select_protocol([member("a", RANGE, RANGE), member("b", RANGE, STICKY)]) == "range"


def test_subscriptions_are_read_in_any_version() -> None:
    assert topics_of([consumer_metadata("t1,t2"), consumer_metadata("t2")]) == frozenset(
        {"t1", "t2"}
    )
    assert topics_of([b"\x00\x63" + consumer_metadata("t1")[2:] + b"more"]) == frozenset({"t1"})
    assert topics_of([]) == frozenset()


def test_a_subscription_that_is_none_makes_all_of_them_unknown() -> None:
    for broken in (b"", b"\0", b"\0\0", b"\0\0\xff\xff\xff\xff", consumer_metadata("t1")[:9]):
        assert topics_of([consumer_metadata("t1"), broken]) is None

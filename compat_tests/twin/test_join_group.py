"""JoinGroup: how one gets into a classic group, who leads it, and who is turned away."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.groups import Group, Protocols, subscription
from compat_tests.twin.topics import Twin

SESSION_MS_MIN, SESSION_MS_MAX = 500, 1_800_000


@pytest.mark.every_version("join_group")
def test_the_only_member(group: Group, version: int) -> None:
    """From version 4 on a member without an id is given one first (KIP-394)."""
    member = group.member()
    for _ in range(3):
        member.join(version)
    assert member.generation == 1
    group.describe()
    member.sync({member: b"everything"})
    assert group.describe()["group_state"] == "Stable"


@pytest.mark.every_version("join_group")
def test_a_second_member(group: Group, version: int) -> None:
    """It is parked until the first one has joined again; the leader alone is told who is there."""
    first, second = group.member("first"), group.member("second")
    first.enter(version)
    first.sync({first: b"all"})
    if version >= 4:
        second.join(version)
    second.send("join_group", second.joining(), version)
    group.wait_for_state("PreparingRebalance")
    assert second.is_silent()
    first.heartbeat()
    first.send("join_group", first.joining(), version)
    group.receive_joins(first, second, version=version)
    assert (first.generation, second.generation) == (2, 2)
    group.sync(first, second)
    group.describe()


@pytest.mark.every_version("join_group", since=5)
def test_static_members(group: Group, version: int) -> None:
    """They need no id first, and the id that they get begins with the name of the instance."""
    first, second = (group.member(name, instance=f"instance {name}") for name in ("a", "b"))
    first.enter(version)
    first.sync({first: b"all"})
    second.send("join_group", second.joining(), version)
    group.wait_for_state("PreparingRebalance")
    first.send("join_group", first.joining(), version)
    group.receive_joins(first, second, version=version)
    group.sync(first, second)
    group.describe()


@pytest.mark.every_version("join_group")
@pytest.mark.parametrize("version_of_group", ["empty", "stable"])
def test_unknown_members(group: Group, version: int, version_of_group: str) -> None:
    """Ids are made by the broker: nobody joins with one of his own."""
    if version_of_group == "stable":
        group.stable("other")
    stranger = group.member("stranger")
    for fields in ({"member_id": "mine"}, {"member_id": "x" * 300}):
        stranger.join(version, **fields)
        stranger.join(version, **fields, group_instance_id="an instance")
    group.describe()


@pytest.mark.every_version("join_group")
def test_session_timeouts(coordinated: Twin, version: int) -> None:
    with all_cases() as cases:
        for timeout in (
            *(-(1 << 31), -1, 0, SESSION_MS_MIN - 1, SESSION_MS_MIN),
            *(SESSION_MS_MAX, SESSION_MS_MAX + 1, (1 << 31) - 1),
        ):
            group = Group(coordinated)
            member = group.member()
            with cases.case(f"{timeout} ms"):
                member.join(version, session_timeout=timeout)
                member.join(version, session_timeout=timeout)
            group.close()


@pytest.mark.every_version("join_group")
def test_bad_requests(group: Group, version: int) -> None:
    """Each is refused, and leaves no group behind."""
    bad: list[dict[str, Any]] = [
        {"group_id": ""},
        {"protocol_type": ""},
        {"protocols": ()},
        {"protocol_type": "", "protocols": ()},
        {"member_id": "mine", "protocols": ()},
        {"session_timeout": 1, "protocols": ()},
        {"group_id": "", "session_timeout": 1},
    ]
    with all_cases() as cases:
        for fields in bad:
            with cases.case(str(fields)):
                group.member().join(version, **fields)
    group.describe()


@pytest.mark.parametrize("name", ["", "\n", "ä/#?%*", "group " + "x" * 1000])
def test_names_of_groups(coordinated: Twin, name: str) -> None:
    """Any text but the empty one is a group id."""
    group = Group(coordinated)
    group.id = coordinated.unused_name(name) if name else ""
    member = group.member()
    for _ in range(2):
        member.join()
    member.sync({member: b"all"})
    group.describe()
    member.leave()
    group.close()


def test_a_group_id_as_long_as_it_can_be(coordinated: Twin) -> None:
    """Text has at most 32767 bytes; with the name it takes many times the usual record."""
    group = Group(coordinated)
    group.id = coordinated.unused_name("x" * 32_700)
    member = group.member()
    for _ in range(2):
        member.join()
    member.sync({member: b"all"})
    group.describe()
    group.close()


@pytest.mark.every_version("join_group")
def test_members_that_do_not_fit(group: Group, version: int) -> None:
    group.stable("first", protocols=(("a", subscription()), ("b", subscription())))
    unlike: list[dict[str, Any]] = [
        {"protocols": (("c", subscription()),)},
        {"protocol_type": "connect", "protocols": (("a", b""),)},
        {"protocol_type": "connect", "protocols": (("c", b""),)},
        {"protocol_type": ""},
        {"protocols": ()},
    ]
    with all_cases() as cases:
        for number, fields in enumerate(unlike):
            with cases.case(str(fields)):
                other = group.member(f"other {number}")
                other.join(version, **fields)
                other.join(version, **fields)
    assert group.describe()["group_state"] == "Stable"


def test_an_empty_group_may_change_its_kind(group: Group) -> None:
    (first,) = group.stable("first")
    first.leave()
    other = group.member("other")
    for _ in range(2):
        other.join(protocol_type="connect", protocols=(("default", b"\x00\x01"),))
    other.sync({other: b"tasks"}, protocol_type="connect")
    group.describe()


def test_protocols_are_voted_on(group: Group) -> None:
    """The one that most members name first, of those that all of them have."""
    ballots: dict[str, Protocols] = {
        "first": (("only mine", subscription()), ("a", subscription("a")), ("b", subscription())),
        "second": (("b", subscription("2b")), ("a", subscription("2a"))),
        "third": (("b", subscription("3b")), ("c", subscription("3c")), ("a", subscription())),
    }
    members = {name: group.member(name) for name in ballots}
    first = members["first"]
    first.enter(protocols=ballots["first"])
    for name in ("second", "third"):
        group.gather(members[name], protocols=ballots[name])
    group.rejoin(*members.values(), protocols=ballots["first"])
    assert {member.protocol for member in members.values()} == {"b"}
    group.sync(*members.values())
    group.describe()


def test_a_tie_of_votes(group: Group) -> None:
    """Each protocol has one vote; whatever wins, both members are told the same."""
    ballots: dict[str, Protocols] = {
        "first": (("a", subscription()), ("b", subscription())),
        "second": (("b", subscription()), ("a", subscription())),
    }
    first, second = (group.member(name) for name in ballots)
    first.enter(protocols=ballots["first"])
    group.gather(second, protocols=ballots["second"])
    group.rejoin(first, second, protocols=ballots["first"])


def test_the_same_protocol_twice(group: Group) -> None:
    member = group.member()
    twice = (("a", subscription("one")), ("a", subscription("two")), ("b", subscription()))
    for _ in range(2):
        member.join(protocols=twice)
    member.sync({member: b"all"})
    group.describe()


@pytest.mark.every_version("join_group", since=8)
def test_reasons(group: Group, version: int) -> None:
    """Why somebody joins (KIP-800) is only for the broker's own log."""
    member = group.member()
    for reason in ("at first", None, "", "because", "x" * 10_000, "ä\n"):
        member.join(version, reason=reason)
    group.describe()


@pytest.mark.every_version("join_group")
def test_metadata_is_passed_on_byte_by_byte(group: Group, version: int) -> None:
    """Assignors are the clients' own: the broker only carries what they say."""
    every = bytes(range(256))
    protocols = (
        ("cooperative-sticky", subscription("a", user_data=every)),
        ("range", subscription("b", user_data=b"")),
    )
    first, second = group.member("first"), group.member("second")
    first.enter(version, protocols=protocols)
    if version >= 4:
        second.join(version, protocols=protocols[:1])
    second.send("join_group", second.joining(protocols=protocols[:1]), version)
    group.wait_for_size(2)
    first.send("join_group", first.joining(protocols=protocols), version)
    group.receive_joins(first, second, version=version)
    first.sync({first: every, second: every[::-1]})
    second.sync()
    group.describe()


def test_metadata_that_is_no_subscription(group: Group) -> None:
    """Kafka looks into it for the topics, and for some bytes forgets to answer."""
    for number, metadata in enumerate((b"", b"x", b"\xff\xff", b"\x00\x07" + bytes(40))):
        member = group.member(f"member {number}")
        for _ in range(2):
            member.join(protocols=(("range", metadata),))
        member.leave()
    hopeless = group.member("hopeless")
    hopeless.join()
    hopeless.send("join_group", hopeless.joining(protocols=(("range", b"topics of a member"),)))
    hopeless.receive("join_group", deviation="D-012", patience_s=0.5)


def test_other_kinds_of_groups_say_what_they_like(group: Group) -> None:
    member = group.member()
    for _ in range(2):
        member.join(protocol_type="connect", protocols=(("x", b"topics of a member"),))
    member.sync({member: b"tasks"}, protocol_type="connect")
    group.describe()


def test_large_metadata(group: Group) -> None:
    """100 KiB for each of three protocols: more than a consumer of a thousand topics says."""
    large = subscription(*(f"a-topic-with-a-long-name-{number}" for number in range(4000)))
    protocols = (("range", large), ("sticky", large), ("roundrobin", large))
    first, second = group.stable("first", "second", protocols=protocols)
    assert first.generation == second.generation == 2
    group.describe()


def test_many_protocols(group: Group) -> None:
    protocols = [(f"protocol {number}", subscription()) for number in range(1000)]
    member = group.member()
    for _ in range(2):
        member.join(protocols=protocols)
    member.sync({member: b"all"})

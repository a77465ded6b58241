"""Groups on both brokers: one id, and members that each have a connection of their own.

A broker parks a join until the others have joined, so each member talks over its own conversation.
What a member was told (its id on each side, the generation) it says in its next requests, unless a
test names something else. A field may be a function of a side, as `Member.id` is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from compat_tests.twin.codec import Plain, versions
from compat_tests.twin.conversation import Conversation, Pair, Side
from compat_tests.twin.topics import Twin

Protocols = Sequence[tuple[str, bytes]]
# By member, or by an id that no broker has given.
Assignments = Mapping[Any, bytes]


def subscription(*topics: str, user_data: bytes | None = None) -> bytes:
    """What consumers say of themselves when they join, as Kafka's own encode it (version 0)."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    size = struct.pack(">i", -1 if user_data is None else len(user_data))
    return struct.pack(">hi", 0, len(topics)) + names + size + (user_data or b"")


RANGE: Protocols = (("range", subscription("some-topic")),)

# What a broker adds to the name of a client or an instance to make a member id.
_RANDOM_PART = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[A-Za-z0-9_-]{22}$")


def newest(api: str) -> int:
    return versions(api)[-1]


class Group:
    """A group that no other test has."""

    def __init__(self, twin: Twin) -> None:
        self.id = twin.unused_group()
        self.twin = twin
        self._members: list[Member] = []

    def member(self, name: str = "first", *, instance: str | None = None) -> Member:
        """Somebody who has not joined yet. The name stands for the ids in what is compared."""
        member = Member(self, name, instance)
        self._members.append(member)
        return member

    def stable(self, *names: str, protocols: Protocols = RANGE, **fields: Any) -> list[Member]:
        """Members of a stable group, the first one its leader, each with its name assigned."""
        members = [self.member(name) for name in names]
        members[0].enter(protocols=protocols, **fields)
        if len(members) > 1:
            self.gather(*members[1:], protocols=protocols, **fields)
            self.rejoin(*members, protocols=protocols, **fields)
        self.sync(*members)
        return members

    def gather(self, *members: Member, **fields: Any) -> None:
        """New members of a group that waits for the old ones; their joins stay unanswered."""
        for member in members:
            if not member.has_id and member.instance is None:
                member.join(**fields)
            before = self.size()
            member.send("join_group", member.joining(**fields))
            self.wait_for_size(before + 1)

    def rejoin(self, first: Member, *parked: Member, **fields: Any) -> None:
        """The last one whom the others wait for joins, and everybody is answered."""
        first.send("join_group", first.joining(**fields))
        self.receive_joins(first, *parked)

    def receive_joins(self, leader: Member, *followers: Member, version: int = 9) -> None:
        """The answers; the leader's comes last, because it names everybody by id."""
        for member in (*followers, leader):
            member.receive("join_group", version)

    def sync(self, *members: Member) -> None:
        """The leader, who is the first, gives everybody its name in bytes."""
        members[0].sync({member: member.name.encode() for member in members})
        for member in members[1:]:
            member.sync()

    def describe(self) -> Plain:
        """The group as Apache Kafka describes it, when both describe it alike."""
        body = {"groups": [self.id]}
        pair = self.twin.control.ask("describe_groups", newest("describe_groups"), body)
        described: Plain = pair.kafka["groups"][0]
        return described

    def size(self) -> int:
        return len(self.describe()["members"])

    def wait_for_size(self, count: int) -> None:
        """Wait until both brokers count so many members; a parked join says nothing itself."""
        self._wait(lambda group: len(group["members"]) == count)

    def wait_for_state(self, state: str) -> None:
        self._wait(lambda group: group["group_state"] == state)

    def _wait(self, done: Any) -> None:
        body = {"groups": [self.id]}
        self.twin.wait(
            *("describe_groups", newest("describe_groups"), body),
            lambda reply: done(reply["groups"][0]),
        )

    def close(self) -> None:
        for member in self._members:
            member.close()


class Member:
    """One member of a classic group."""

    def __init__(self, group: Group, name: str, instance: str | None) -> None:
        self.group = group
        self.name = name
        self.instance = instance
        self.generation = -1
        self.protocol: str | None = None
        self.talk = Conversation(group.twin.sides, same_broker=group.twin.same_broker)
        self._ids: dict[str, str] = {}

    @property
    def has_id(self) -> bool:
        return bool(self._ids)

    def id(self, side: Side) -> str:
        """What the broker of this side calls the member; empty before it has said so."""
        return self._ids.get(side.name, "")

    def close(self) -> None:
        self.talk.close()
        for side in self.group.twin.sides:
            side.members.pop(_random_part(self.id(side)), None)

    # The requests of a life in a group

    def enter(self, version: int = 9, **fields: Any) -> Pair:
        """Join, with the second request where the first one only gives an id (KIP-394)."""
        pair = self.join(version, **fields)
        if pair.kafka["error_code"] == "member_id_required":
            pair = self.join(version, **fields)
        assert pair.kafka["error_code"] == "none", pair.kafka
        return pair

    def join(self, version: int = 9, **fields: Any) -> Pair:
        return self.ask("join_group", self.joining(**fields), version)

    def sync(
        self,
        assignments: Assignments | None = None,
        version: int = 5,
        **fields: Any,
    ) -> Pair:
        return self.ask("sync_group", self.assigning(assignments or {}, **fields), version)

    def heartbeat(self, version: int = 4, **fields: Any) -> Pair:
        return self.ask("heartbeat", fields, version)

    def leave(self, version: int = 5, **fields: Any) -> Pair:
        return self.ask("leave_group", fields, version)

    def commit(self, topics: Any, version: int = 9, **fields: Any) -> Pair:
        return self.ask("offset_commit", {"topics": topics, **fields}, version)

    def joining(self, *, protocols: Protocols = RANGE, **fields: Any) -> Plain:
        named = [{"name": name, "metadata": metadata} for name, metadata in protocols]
        return {"protocols": named, **fields}

    def assigning(self, assignments: Assignments, **fields: Any) -> Plain:
        def per_side(side: Side) -> list[Plain]:
            return [
                {
                    "member_id": member if isinstance(member, str) else member.id(side),
                    "assignment": assignment,
                }
                for member, assignment in assignments.items()
            ]

        return {"assignments": per_side, **fields}

    # Asking

    def ask(
        self, api: str, fields: Plain | None = None, version: int | None = None, **options: Any
    ) -> Pair:
        self.send(api, fields, version)
        return self.receive(api, version, **options)

    def send(self, api: str, fields: Plain | None = None, version: int | None = None) -> None:
        def body(side: Side) -> Plain:
            merged = {**self._base(api, side), **(fields or {})}
            return {key: value(side) if callable(value) else value for key, value in merged.items()}

        self.talk.send(api, newest(api) if version is None else version, body)

    def receive(self, api: str, version: int | None = None, **options: Any) -> Pair:
        number = newest(api) if version is None else version
        pair = self.talk.receive(api, number, learn=self._learn, **options)
        if api == "join_group" and pair.kafka.get("error_code") == "none":
            self.generation = pair.kafka["generation_id"]
            self.protocol = pair.kafka["protocol_name"]
        return pair

    def is_silent(self, duration_s: float = 0.05) -> bool:
        """Whether neither broker answers for this long."""
        return all(self.talk.connection(side).is_silent(duration_s) for side in self.talk.sides)

    def _base(self, api: str, side: Side) -> Plain:
        me = {"member_id": self.id(side), "group_instance_id": self.instance}
        base = {"group_id": self.group.id, **me}
        if api == "join_group":
            timeouts = {"session_timeout": 30_000, "rebalance_timeout": 30_000}
            return {**base, **timeouts, "protocol_type": "consumer"}
        if api == "sync_group":
            kind = {"protocol_type": "consumer", "protocol_name": self.protocol}
            return {**base, "generation_id": self.generation, **kind}
        if api == "heartbeat":
            return {**base, "generation_id": self.generation}
        if api == "leave_group":
            return {"group_id": self.group.id, "member_id": self.id(side), "members": [me]}
        assert api == "offset_commit", api
        return {**base, "generation_id_or_member_epoch": self.generation}

    def _learn(self, side: Side, reply: Plain) -> None:
        """Keep the id that a join gave, under a name that both sides share from now on."""
        given = reply.get("member_id")
        if given and given != self.id(side) and "generation_id" in reply:
            self._ids[side.name] = given
            side.members[_random_part(given)] = f"<{self.name}>"


def _random_part(member_id: str) -> str:
    found = _RANDOM_PART.search(member_id)
    return found[0] if found else member_id

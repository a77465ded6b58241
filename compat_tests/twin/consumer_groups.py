"""Groups of the consumer protocol (KIP-848) on both brokers: members that only heartbeat.

Member ids are chosen by the clients here, the same on both sides, as they are from version 1 on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Pair, Side
from compat_tests.twin.groups import newest
from compat_tests.twin.topics import Twin, neighbour

Assignment = Mapping[str, Sequence[int]]

SETTLED_TIMEOUT_S = 40


def topic_partitions(assignment: Assignment) -> Callable[[Side], list[Plain]]:
    """Partitions by topic, with the ids that the topics have on each side."""

    def per_side(side: Side) -> list[Plain]:
        return [
            {"topic_id": side.topic_id(topic), "partitions": list(partitions)}
            for topic, partitions in assignment.items()
        ]

    return per_side


class ConsumerGroup:
    """A group that no other test has."""

    def __init__(self, twin: Twin, group_id: str | None = None) -> None:
        self.id = group_id or twin.unused_group()
        self.twin = twin
        self._members: list[ConsumerMember] = []

    def member(self, name: str, *, instance: str | None = None) -> ConsumerMember:
        """Somebody who has not joined yet."""
        member = ConsumerMember(self, name, instance)
        self._members.append(member)
        return member

    def create_topic(self, stem: str = "topic", *, partitions: int = 1) -> str:
        """A new topic that both coordinators know: Kafka's learns of it later than others do."""
        topic = self.twin.create_topic(stem, partitions=partitions)
        self.wait_until_assignable(topic, partitions)
        return topic

    def wait_until_assignable(self, topic: str, partitions: int) -> None:
        """Wait until a member of another group has been assigned the whole topic.

        Each partition of groups hears of a topic in its own time, so the other group is one of the
        same partition.
        """
        scout = ConsumerGroup(self.twin, neighbour(self.id)).member("scout")
        scout.join([topic], compare=False)
        scout.beat_until({topic: range(partitions)})
        scout.leave(compare=False)
        scout.close()

    def beat_until_gone(self, member: ConsumerMember, count: int) -> None:
        """Heartbeat with one member until both brokers count so many."""
        deadline = time.monotonic() + SETTLED_TIMEOUT_S
        body = {"group_ids": [self.id]}
        while True:
            member.beat(compare=False)
            pair = self.twin.control.ask("consumer_group_describe", 1, body, compare=False)
            if all(len(pair[side]["groups"][0]["members"]) == count for side in self.twin.sides):
                return
            assert time.monotonic() < deadline, pair
            time.sleep(0.05)

    def describe(self, version: int = 1, **options: Any) -> Plain:
        """The group as Apache Kafka describes it, when both describe it alike."""
        body = {"group_ids": [self.id]}
        pair = self.twin.control.ask("consumer_group_describe", version, body, **options)
        described: Plain = pair.kafka["groups"][0]
        return described

    def close(self) -> None:
        for member in self._members:
            member.close()


class ConsumerMember:
    """One member of a consumer group."""

    def __init__(self, group: ConsumerGroup, name: str, instance: str | None) -> None:
        self.group = group
        self.name = name
        self.instance = instance
        self.talk = Conversation(group.twin.sides, same_broker=group.twin.same_broker)
        self._epochs = dict.fromkeys(self.talk.sides, 0)
        self._assigned: dict[Side, dict[str, list[int]]] = {side: {} for side in self.talk.sides}

    @property
    def epoch(self) -> int:
        """The member epoch that both brokers have told."""
        kafka, other = self._epochs.values()
        assert kafka == other, self._epochs
        return kafka

    @property
    def assigned(self) -> dict[str, list[int]]:
        """What both brokers have told it to have."""
        kafka, other = self._assigned.values()
        assert kafka == other, self._assigned
        return kafka

    def close(self) -> None:
        self.talk.close()

    def join(self, topics: Sequence[str] | None, version: int = 1, **fields: Any) -> Pair:
        """The first heartbeat, which says everything."""
        whole = {"subscribed_topic_names": topics, "topic_partitions": [], "member_epoch": 0}
        return self.beat(version, **{"rebalance_timeout": 30_000, **whole, **fields})

    def own(self, assignment: Assignment | None = None, version: int = 1, **fields: Any) -> Pair:
        """A heartbeat that says what it owns: what it was assigned, or something else."""

        def owned(side: Side) -> list[Plain]:
            said = self._assigned[side] if assignment is None else assignment
            return topic_partitions(said)(side)

        return self.beat(version, topic_partitions=owned, **fields)

    def leave(self, version: int = 1, epoch: int = -1, **fields: Any) -> Pair:
        return self.beat(version, member_epoch=epoch, **fields)

    def settle(self, rounds: int = 3, *others: ConsumerMember) -> None:
        """Heartbeats in which each says that it owns what it was told to."""
        for _ in range(rounds):
            for member in (self, *others):
                member.beat()
                member.own()

    def beat_until(self, assigned: Assignment) -> None:
        """Heartbeat until both brokers have assigned this, however many that takes."""
        wanted = {topic: sorted(partitions) for topic, partitions in assigned.items()}
        deadline = time.monotonic() + SETTLED_TIMEOUT_S
        while any(now != wanted for now in self._assigned.values()):
            assert time.monotonic() < deadline, f"{self._assigned} instead of {wanted}"
            self.own(compare=False)
            time.sleep(0.01)

    def beat(self, version: int = 1, **fields: Any) -> Pair:
        """One heartbeat; what is not named is left out, as clients do while nothing changes."""
        known = ("rules", "deviation", "compare", "prepare")
        options = {key: fields.pop(key) for key in known if key in fields}

        def body(side: Side) -> Plain:
            base = {
                "group_id": self.group.id,
                "member_id": self.name,
                "member_epoch": self._epochs[side],
                "instance_id": self.instance,
                "subscribed_topic_names": None,
                "topic_partitions": None,
            }
            merged = {**base, **fields}
            return {key: value(side) if callable(value) else value for key, value in merged.items()}

        return self.talk.ask(
            "consumer_group_heartbeat", version, body, learn=self._learn, **options
        )

    def commit(self, topics: Any, version: int | None = None, **fields: Any) -> Pair:
        def body(side: Side) -> Plain:
            return {
                "group_id": self.group.id,
                "generation_id_or_member_epoch": self._epochs[side],
                "member_id": self.name,
                "topics": topics(side),
                **fields,
            }

        return self.talk.ask("offset_commit", version or newest("offset_commit"), body)

    def _learn(self, side: Side, reply: Plain) -> None:
        if reply["error_code"] != "none":
            return
        self._epochs[side] = reply["member_epoch"]
        if reply["assignment"] is not None:
            self._assigned[side] = {
                side.topic_name(entry["topic_id"]): sorted(entry["partitions"])
                for entry in reply["assignment"]["topic_partitions"]
            }

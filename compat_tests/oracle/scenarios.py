"""Groups that change step by step, and how Kafka's assignors follow; every step starts from the
target assignment of the last one."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from compat_tests.oracle.java_oracle import JavaOracle

TOPICS_MAX = 7
PARTITIONS_MAX = 12
MEMBERS_MAX = 12
STEPS = 6
# The last two sort differently by code points and by UTF-16 code units.
NAMES = [*(f"m{number}" for number in range(14)), "Zoë", "\uff5e", "\U0001f600"]


@dataclass(frozen=True)
class Member:
    """``topics`` are indices into the topic ids of the scenario."""

    member_id: str
    instance_id: str | None
    topics: list[int]


@dataclass(frozen=True)
class Step:
    """One run of an assignor; a topic that does not exist (yet, or any more) has no partitions."""

    assignor: str
    partition_counts: list[int]
    members: list[Member]


@dataclass(frozen=True)
class Scenario:
    topic_ids: list[str]
    steps: list[Step]


# The owner of each partition of each topic, as index into the members of the step, or -1.
Owners = list[list[int]]


def play(scenario: Scenario, oracle: JavaOracle) -> list[Owners]:
    """The owners after each step, as Kafka's assignor has it."""
    played: list[Owners] = []
    assigned: dict[str, dict[int, list[int]]] = {}
    for step in scenario.steps:
        members = [
            {**asdict(member), "assigned": sorted(assigned.get(member.member_id, {}).items())}
            for member in step.members
        ]
        owners: Owners = oracle.ask(
            "assign",
            assignor=step.assignor,
            topic_ids=scenario.topic_ids,
            partition_counts=step.partition_counts,
            members=members,
        )
        assigned = {member.member_id: defaultdict(list) for member in step.members}
        for topic, owners_of_topic in enumerate(owners):
            for partition, owner in enumerate(owners_of_topic):
                if owner != -1:
                    assigned[step.members[owner].member_id][topic].append(partition)
        played.append(owners)
    return played


def random_scenario(seed: int) -> Scenario:
    """A group of one of three kinds: everybody subscribes to the same topics, to any, or to two
    neighbours of a ring, which takes the most rounds to balance."""
    group = _Group(random.Random(seed), ("same", "any", "ring")[seed % 3])
    return Scenario(group.topic_ids, [group.step() for _ in range(STEPS)])


class _Group:
    def __init__(self, rng: random.Random, kind: str) -> None:
        self._rng = rng
        self._kind = kind
        self._assignor = rng.choice(("uniform", "range"))
        count = rng.randint(2, TOPICS_MAX)
        self.topic_ids = [str(topic_id) for topic_id in _topic_ids(rng, count)]
        self._counts = [rng.randint(1, PARTITIONS_MAX) for _ in range(count)]
        self._members: dict[str, Member] = {}
        for _ in range(rng.randint(1, MEMBERS_MAX)):
            self._join()

    def step(self) -> Step:
        members = [self._members[member_id] for member_id in sorted(self._members)]
        taken = Step(self._assignor, list(self._counts), members)
        changes = (self._join, self._leave, self._resubscribe, self._grow, self._delete_topic)
        for _ in range(self._rng.randint(1, 3)):
            self._rng.choices(changes, (4, 4, 3, 3, 1))[0]()
        # Starting from what `range` left, `uniform` has much to move. `uniform` is the longer one.
        self._assignor = self._rng.choices(("uniform", "range"), (4, 1))[0]
        return taken

    def _join(self) -> None:
        rng = self._rng
        member_id = rng.choice([name for name in NAMES if name not in self._members])
        # Another order than that of the member ids.
        instance_id = member_id[::-1] if rng.random() < 0.3 else None
        self._members[member_id] = Member(member_id, instance_id, self._subscription())
        if len(self._members) > MEMBERS_MAX:
            self._leave()

    def _leave(self) -> None:
        if len(self._members) > 1:
            del self._members[self._rng.choice(sorted(self._members))]

    def _resubscribe(self) -> None:
        changed = list(self._members)
        if self._kind == "same":
            topics = self._rng.sample(self._existing(), self._rng.randint(0, len(self._existing())))
            subscriptions = [topics] * len(changed)
        else:
            changed = changed[: self._rng.randint(1, 3)]
            subscriptions = [self._subscription() for _ in changed]
        for member_id, topics in zip(changed, subscriptions, strict=True):
            instance_id = self._members[member_id].instance_id
            self._members[member_id] = Member(member_id, instance_id, sorted(topics))

    def _grow(self) -> None:
        for topic in self._rng.sample(self._existing(), min(2, len(self._existing()))):
            self._counts[topic] += self._rng.randint(1, 5)

    def _delete_topic(self) -> None:
        if len(self._existing()) < 2:
            return
        topic = self._rng.choice(self._existing())
        self._counts[topic] = 0
        for member_id, old in self._members.items():
            topics = [other for other in old.topics if other != topic]
            self._members[member_id] = Member(member_id, old.instance_id, topics)

    def _existing(self) -> list[int]:
        return [topic for topic, count in enumerate(self._counts) if count]

    def _subscription(self) -> list[int]:
        existing = self._existing()
        if self._kind == "same":
            others = [member.topics for member in self._members.values()]
            return others[0] if others else existing
        if self._kind == "any":
            return sorted(self._rng.sample(existing, self._rng.randint(0, len(existing))))
        start = self._rng.randrange(len(existing))
        return sorted({existing[start], existing[(start + 1) % len(existing)]})


def _topic_ids(rng: random.Random, count: int) -> list[UUID]:
    """Random ids that are in the same order for Uuid.compareTo as in a HashSet.

    The uniform assignor copies the subscription into a HashSet and goes through it; for these ids
    that is not chance.
    """
    signed = sorted(rng.getrandbits(64) - 2**63 for _ in range(count))
    buckets = sorted(rng.sample(range(16), count))
    return [
        _in_bucket(rng, high % 2**64, bucket) for high, bucket in zip(signed, buckets, strict=True)
    ]


def _in_bucket(rng: random.Random, high: int, bucket: int) -> UUID:
    while True:
        low = rng.getrandbits(64)
        folded = high ^ low
        hash_code = (folded >> 32 ^ folded) & 0xFFFFFFFF
        if (hash_code ^ hash_code >> 16) % 16 == bucket:
            return UUID(int=high << 64 | low)


def to_json(scenario: Scenario, owners: list[Owners]) -> dict[str, Any]:
    """A member is a list of its fields, because there are many of them."""
    steps = [
        {**vars(step), "members": [list(vars(member).values()) for member in step.members]}
        for step in scenario.steps
    ]
    return {"topic_ids": scenario.topic_ids, "steps": steps, "owners": owners}


def from_json(line: dict[str, Any]) -> tuple[Scenario, list[Owners]]:
    """The scenario of a line, and the owners after each step."""
    steps = [
        Step(**{**step, "members": [Member(*fields) for fields in step["members"]]})
        for step in line["steps"]
    ]
    return Scenario(line["topic_ids"], steps), line["owners"]

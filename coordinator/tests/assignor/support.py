"""Groups for the tests of assignors, and what is asked of every assignment."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from klamm.coordinator.assignor import Assignment, MemberSpec
from klamm.coordinator.ports import TopicDescription

Members = dict[str, MemberSpec]
Topics = dict[UUID, TopicDescription]
Target = Mapping[str, Assignment]


def topic_id(number: int) -> UUID:
    return UUID(int=number)


def topics_of(*partition_counts: int) -> Topics:
    """Topics 0, 1, 2 … with that many partitions each."""
    return {
        topic_id(number): TopicDescription(f"t{number}", topic_id(number), (frozenset(),) * count)
        for number, count in enumerate(partition_counts)
    }


def member(
    *topics: int,
    assigned: Mapping[int, set[int]] | None = None,
    instance_id: str | None = None,
    rack_id: str | None = None,
) -> MemberSpec:
    """A member that subscribes to topics by number, and has partitions of topics by number."""
    had = {topic_id(topic): frozenset(numbers) for topic, numbers in (assigned or {}).items()}
    return MemberSpec(frozenset(map(topic_id, topics)), rack_id, instance_id, had)


def numbered(target: Target) -> dict[str, dict[int, set[int]]]:
    """A target assignment in the words of `member`."""
    return {
        member_id: {topic.int: set(numbers) for topic, numbers in assignment.items()}
        for member_id, assignment in target.items()
    }


def after(members: Members, target: Target) -> Members:
    """The members once the target is their assignment; whoever has none there has nothing."""
    return {
        member_id: MemberSpec(
            spec.topic_ids, spec.rack_id, spec.instance_id, target.get(member_id, {})
        )
        for member_id, spec in members.items()
    }


def sizes(target: Target) -> dict[str, int]:
    return {member_id: sum(map(len, topics.values())) for member_id, topics in target.items()}


def owners(target: Target) -> dict[tuple[UUID, int], str]:
    """The owner of each partition; fails if one has two."""
    found: dict[tuple[UUID, int], str] = {}
    for member_id, assignment in target.items():
        for topic, partitions in assignment.items():
            assert partitions, "a topic without partitions is left out"
            for partition in partitions:
                assert (topic, partition) not in found
                found[topic, partition] = member_id
    return found


def check(members: Members, topics: Topics, target: Target) -> None:
    """Every partition of every topic with subscribers belongs to exactly one of them."""
    assert target.keys() == members.keys()
    owned = owners(target)
    for (topic, _), owner in owned.items():
        assert topic in members[owner].topic_ids
    subscribed = {topic for spec in members.values() for topic in spec.topic_ids}
    wanted = {(topic, n) for topic in subscribed for n in range(topics[topic].partition_count)}
    assert owned.keys() == wanted

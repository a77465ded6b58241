"""What holds for every group and every assignment that it starts from."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from klamm.coordinator.assignor import ASSIGNORS, MemberSpec
from klamm.coordinator.tests.assignor.support import (
    Members,
    Topics,
    after,
    check,
    owners,
    sizes,
    topic_id,
    topics_of,
)

UNIFORM = ASSIGNORS["uniform"]

partition_counts = st.lists(st.integers(1, 20), min_size=1, max_size=6)


@st.composite
def groups(draw: st.DrawFn, *, same: bool | None = None) -> tuple[Members, Topics]:
    """A group with any assignment, of its topics and of others, balanced or not.

    Args:
        same: whether all members subscribe to the same topics; None for either.
    """
    counts = draw(partition_counts)
    topics = topics_of(*counts)
    subscriptions = st.frozensets(st.sampled_from(sorted(topics)))
    common = draw(subscriptions)
    is_same = draw(st.booleans()) if same is None else same
    member_ids = [f"m{number}" for number in range(draw(st.integers(1, 8)))]
    assigned: dict[str, dict[int, set[int]]] = {member_id: {} for member_id in member_ids}
    # One more topic than there are: it was deleted. A byte chooses the owner of a partition, and
    # there may be none.
    partitions = [(topic, n) for topic, count in enumerate([*counts, 2]) for n in range(count)]
    choices = draw(st.just(b"") | st.binary(min_size=len(partitions), max_size=len(partitions)))
    for (topic, partition), choice in zip(partitions, choices, strict=False):
        owner = [*member_ids, None][choice % (len(member_ids) + 1)]
        if owner is not None:
            assigned[owner].setdefault(topic, set()).add(partition)
    instance_ids = draw(st.permutations([None, None, None, None, None, "i1", "i2", "i3"]))
    members = {
        member_id: MemberSpec(
            common if is_same else draw(subscriptions),
            None,
            instance_id,
            {topic_id(topic): frozenset(numbers) for topic, numbers in had.items()},
        )
        for (member_id, had), instance_id in zip(assigned.items(), instance_ids, strict=False)
    }
    return members, topics


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_every_partition_has_one_owner(name: str, group: tuple[Members, Topics]) -> None:
    members, topics = group
    check(members, topics, ASSIGNORS[name].assign(members, topics))


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_a_second_run_changes_nothing(name: str, group: tuple[Members, Topics]) -> None:
    members, topics = group
    target = ASSIGNORS[name].assign(members, topics)
    assert ASSIGNORS[name].assign(after(members, target), topics) == target


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_the_order_of_members_has_no_say(name: str, group: tuple[Members, Topics]) -> None:
    members, topics = group
    turned = dict(reversed(members.items()))
    assert ASSIGNORS[name].assign(turned, topics) == ASSIGNORS[name].assign(members, topics)


@given(group=groups(same=True))
def test_same_topics_are_balanced_with_the_fewest_moves(group: tuple[Members, Topics]) -> None:
    members, topics = group
    target = UNIFORM.assign(members, topics)
    spread = sizes(target).values()
    assert max(spread) - min(spread) <= 1

    had = {
        member_id: sum(len(spec.assigned.get(topic, ())) for topic in spec.topic_ids)
        for member_id, spec in members.items()
    }
    kept = sum(
        len(spec.assigned.get(topic, frozenset()) & partitions)
        for member_id, spec in members.items()
        for topic, partitions in target[member_id].items()
    )
    # Nobody can keep more than its share, and only so many shares are larger by one.
    quota, extra = divmod(sum(spread), len(members))
    larger = sum(size > quota for size in had.values())
    assert kept == sum(min(size, quota) for size in had.values()) + min(extra, larger)


@given(group=groups(same=True))
def test_a_new_member_takes_only_its_share(group: tuple[Members, Topics]) -> None:
    members, topics = group
    before = UNIFORM.assign(members, topics)
    topic_ids = next(iter(members.values())).topic_ids
    joined = {**after(members, before), "joined": MemberSpec(topic_ids, None, None, {})}
    target = UNIFORM.assign(joined, topics)
    had = owners(before)
    moved = [partition for partition, owner in owners(target).items() if had[partition] != owner]
    assert len(moved) == sizes(target)["joined"]


@given(group=groups(same=True))
def test_members_keep_everything_when_another_leaves(group: tuple[Members, Topics]) -> None:
    members, topics = group
    before = UNIFORM.assign(members, topics)
    left = min(members)
    remaining = {key: spec for key, spec in after(members, before).items() if key != left}
    target = UNIFORM.assign(remaining, topics)
    for member_id, assignment in target.items():
        for topic, partitions in before[member_id].items():
            assert partitions <= assignment[topic]


@given(group=groups(same=False))
def test_each_topic_is_balanced_among_its_subscribers(group: tuple[Members, Topics]) -> None:
    """Whoever has two partitions more than another subscriber has none of this topic to give."""
    members, topics = group
    target = UNIFORM.assign(members, topics)
    spread = sizes(target)
    for topic in topics:
        subscribers = [key for key, spec in members.items() if topic in spec.topic_ids]
        fewest = min((spread[key] for key in subscribers), default=0)
        for member_id in subscribers:
            assert spread[member_id] - fewest <= 1 or topic not in target[member_id]

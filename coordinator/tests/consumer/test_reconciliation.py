"""One step towards the target, state by state."""

from __future__ import annotations

from uuid import UUID

import pytest

from klamm.coordinator.consumer.member import ConsumerMember, Partitions
from klamm.coordinator.consumer.reconciliation import Goal, OwnedPartitions, reconcile
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode

FOO, BAR = UUID(int=1), UUID(int=2)
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def member(
    state: MemberState, epoch: int, assigned: Partitions, revoking: Partitions | None = None
) -> ConsumerMember:
    return ConsumerMember(
        "m",
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned=assigned,
        pending_revocation=revoking or {},
    )


def goal(
    target: dict[UUID, frozenset[int]],
    *,
    epoch: int = 5,
    subscribed: tuple[UUID, ...] = (FOO, BAR),
    changed: bool = False,
    taken: tuple[tuple[UUID, int], ...] = (),
) -> Goal:
    return Goal(epoch, target, subscribed, changed, lambda *partition: partition in taken)


def moved(
    before: ConsumerMember, goal: Goal, owned: OwnedPartitions
) -> tuple[MemberState, int, int, Partitions, Partitions]:
    after = reconcile(before, goal, owned)
    return (
        after.state,
        after.member_epoch,
        after.previous_member_epoch,
        after.assigned,
        after.pending_revocation,
    )


TARGET = {FOO: frozenset({0, 1})}


def test_stable_at_the_epoch_of_the_target_stays() -> None:
    before = member(STABLE, 5, {FOO: {0: 5}})
    assert reconcile(before, goal(TARGET), None) is before


def test_stable_takes_what_is_free_and_keeps_what_it_has() -> None:
    before = member(STABLE, 4, {FOO: {0: 3}})
    assert moved(before, goal(TARGET), None) == (STABLE, 5, 4, {FOO: {0: 3, 1: 5}}, {})


def test_stable_waits_for_what_others_have() -> None:
    before = member(STABLE, 4, {FOO: {0: 3}})
    after = moved(before, goal(TARGET, taken=((FOO, 1),)), None)
    assert after == (UNRELEASED, 5, 4, {FOO: {0: 3}}, {})


def test_stable_gives_up_first_and_keeps_its_epoch() -> None:
    before = member(STABLE, 4, {FOO: {0: 3}, BAR: {7: 2}})
    expected = (UNREVOKED, 4, 4, {FOO: {0: 3}}, {BAR: {7: 2}})
    assert moved(before, goal(TARGET), None) == expected
    assert moved(before, goal(TARGET), {BAR: frozenset({7, 8})}) == expected


def test_stable_that_owns_nothing_of_it_any_more_moves_on() -> None:
    before = member(STABLE, 4, {FOO: {0: 3}, BAR: {7: 2}})
    after = moved(before, goal(TARGET), {FOO: frozenset({0})})
    assert after == (STABLE, 5, 4, {FOO: {0: 3, 1: 5}}, {})


@pytest.mark.parametrize("owned", [None, {BAR: frozenset({7})}])
def test_unrevoked_waits_until_it_says_so(owned: OwnedPartitions) -> None:
    before = member(UNREVOKED, 4, {FOO: {0: 3}}, {BAR: {7: 2}})
    assert reconcile(before, goal(TARGET), owned) is before


def test_unrevoked_moves_on() -> None:
    before = member(UNREVOKED, 4, {FOO: {0: 3}}, {BAR: {7: 2}})
    after = moved(before, goal(TARGET), {FOO: frozenset({0})})
    assert after == (STABLE, 5, 4, {FOO: {0: 3, 1: 5}}, {})


def test_what_was_given_up_may_come_back() -> None:
    before = member(UNREVOKED, 4, {FOO: {0: 3}}, {FOO: {1: 2}})
    after = moved(before, goal(TARGET, taken=((FOO, 0), (FOO, 1))), {FOO: frozenset({0})})
    assert after == (STABLE, 5, 4, {FOO: {0: 3, 1: 5}}, {})


def test_unreleased_takes_what_has_become_free() -> None:
    before = member(UNRELEASED, 5, {FOO: {0: 3}})
    assert moved(before, goal(TARGET), None) == (STABLE, 5, 5, {FOO: {0: 3, 1: 5}}, {})


def test_a_topic_that_is_no_longer_subscribed_to_is_no_target() -> None:
    before = member(STABLE, 4, {FOO: {0: 3}})
    after = moved(before, goal(TARGET, subscribed=(BAR,)), {})
    assert after == (STABLE, 5, 4, {}, {})


def test_a_changed_subscription_takes_topics_away_at_once() -> None:
    before = member(STABLE, 5, {FOO: {0: 3}, BAR: {7: 2}})
    unsubscribed = goal(TARGET, subscribed=(FOO,), changed=True)
    assert moved(before, unsubscribed, None) == (UNREVOKED, 5, 5, {FOO: {0: 3}}, {BAR: {7: 2}})
    assert moved(before, unsubscribed, {}) == (STABLE, 5, 5, {FOO: {0: 3}}, {})


def test_a_changed_subscription_adds_to_what_has_to_go() -> None:
    before = member(UNREVOKED, 5, {FOO: {0: 3}, BAR: {7: 2}}, {BAR: {8: 2}})
    unsubscribed = goal(TARGET, subscribed=(FOO,), changed=True)
    after = moved(before, unsubscribed, {BAR: frozenset({8})})
    assert after == (UNREVOKED, 5, 5, {FOO: {0: 3}}, {BAR: {7: 2, 8: 2}})


def test_a_changed_subscription_that_keeps_its_topics_changes_nothing() -> None:
    before = member(STABLE, 5, {FOO: {0: 3}})
    assert reconcile(before, goal(TARGET, subscribed=(FOO,), changed=True), None) is before


@pytest.mark.parametrize("owned", [None, {FOO: frozenset({0})}])
def test_an_unknown_state_is_fenced(owned: OwnedPartitions) -> None:
    before = member(MemberState.UNKNOWN, 4, {FOO: {0: 3}})
    with pytest.raises(CoordinatorError) as refusal:
        reconcile(before, goal(TARGET), owned)
    assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_unknown_state_without_partitions_begins_anew() -> None:
    before = member(MemberState.UNKNOWN, 4, {})
    assert moved(before, goal(TARGET), {}) == (STABLE, 5, 4, {FOO: {0: 5, 1: 5}}, {})


def test_unknown_numbers_are_unknown_states() -> None:
    assert MemberState(3) is MemberState.UNKNOWN

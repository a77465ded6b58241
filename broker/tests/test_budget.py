"""The memory budget: never over its size, first come first served, nothing forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.budget import MemoryBudget


def nobody() -> None:
    raise AssertionError("granted to somebody who has gone")


def test_room_is_taken_and_given_back() -> None:
    budget = MemoryBudget(100)
    assert budget.reserve(60, nobody)
    assert budget.bytes_reserved == 60
    budget.release(60)
    assert budget.bytes_reserved == 0


def test_who_finds_no_room_is_called_when_there_is() -> None:
    budget = MemoryBudget(100)
    granted: list[str] = []
    assert budget.reserve(60, nobody)
    assert not budget.reserve(60, lambda: granted.append("second"))
    assert granted == []
    budget.release(60)
    assert granted == ["second"]
    assert budget.bytes_reserved == 60


def test_a_small_one_does_not_overtake_a_large_one() -> None:
    budget = MemoryBudget(100)
    granted: list[str] = []
    assert budget.reserve(60, nobody)
    assert not budget.reserve(90, lambda: granted.append("large"))
    # There would be room for it.
    assert not budget.reserve(10, lambda: granted.append("small"))
    budget.release(60)
    assert granted == ["large", "small"]


def test_one_that_is_larger_than_the_whole_budget_is_served_alone() -> None:
    budget = MemoryBudget(100)
    granted: list[str] = []
    assert budget.reserve(1, nobody)
    assert not budget.reserve(500, lambda: granted.append("huge"))
    assert not budget.reserve(1, lambda: granted.append("behind it"))
    budget.release(1)
    assert granted == ["huge"]
    budget.release(500)
    assert granted == ["huge", "behind it"]


def test_one_that_gave_up_waiting_makes_room_for_those_behind_it() -> None:
    budget = MemoryBudget(100)
    granted: list[str] = []
    assert budget.reserve(60, nobody)
    assert not budget.reserve(90, nobody)
    assert not budget.reserve(10, lambda: granted.append("small"))
    budget.withdraw(nobody)
    assert granted == ["small"]
    assert budget.bytes_reserved == 70


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("reserve"), st.integers(1, 150)),
            st.tuples(st.just("release"), st.integers(0, 20)),
            st.tuples(st.just("withdraw"), st.integers(0, 20)),
        ),
        max_size=40,
    )
)
def test_it_is_fair_and_never_overdrawn(steps: list[tuple[str, int]]) -> None:
    budget = MemoryBudget(100)
    # What each has asked for, in order; those that hold it; those that wait.
    sizes: list[int] = []
    held: list[int] = []
    waiting: list[int] = []
    callbacks: list[Callable[[], None]] = []

    def grant(number: int) -> None:
        assert waiting[0] == number, "overtaken"
        waiting.pop(0)
        held.append(number)

    for kind, value in steps:
        if kind == "reserve":
            number = len(sizes)
            sizes.append(value)
            callbacks.append(partial(grant, number))
            waiting.append(number)
            if budget.reserve(value, callbacks[number]):
                grant(number)
        elif kind == "release" and held:
            budget.release(sizes[held.pop(value % len(held))])
        elif kind == "withdraw" and waiting:
            budget.withdraw(callbacks[waiting.pop(value % len(waiting))])
        assert budget.bytes_reserved == sum(sizes[number] for number in held)
        assert budget.bytes_reserved <= 100 or len(held) == 1
        # Whoever is first in the queue really does not fit.
        assert not waiting or (held and budget.bytes_reserved + sizes[waiting[0]] > 100)

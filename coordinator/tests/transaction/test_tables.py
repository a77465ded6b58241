"""The two tables of transactions: which state may follow which, and what EndTxn is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction import ending
from klamm.coordinator.transaction.ending import is_retry
from klamm.coordinator.transaction.state import PREDECESSORS, TransactionState
from klamm.coordinator.transaction.transaction import Transaction, from_value, to_value
from klamm.wire.errors import ErrorCode

PRODUCER_ID, EPOCH = 7, 5
OPEN = Transaction(
    "t",
    PRODUCER_ID,
    producer_epoch=EPOCH,
    timeout_ms=100,
    partitions=frozenset({("a", 0)}),
    updated_ms=3,
    started_ms=2,
    client_version=2,
    previous_producer_id=PRODUCER_ID,
)
STEPS: dict[str, Callable[[Transaction], Transaction]] = {
    "init": lambda one: one.with_epoch(
        producer_id=PRODUCER_ID,
        producer_epoch=EPOCH + 1,
        last_producer_epoch=-1,
        timeout_ms=100,
        now_ms=9,
    ),
    "add": lambda one: one.with_partitions(frozenset({("b", 1)}), 2, 9),
    "commit": lambda one: one.prepared(
        commit=True, client_version=2, next_producer_id=-1, now_ms=9
    ),
    "abort": lambda one: one.prepared(
        commit=False, client_version=2, next_producer_id=-1, now_ms=9
    ),
    "complete": lambda one: one.completed(9),
}


@pytest.mark.parametrize("before", TransactionState)
@pytest.mark.parametrize("step", STEPS)
def test_no_step_leaves_the_table(step: str, before: TransactionState) -> None:
    transaction = replace(OPEN, state=before)
    try:
        after = STEPS[step](transaction)
    except AssertionError:
        return
    assert before in PREDECESSORS[after.state]


@pytest.mark.parametrize("state", TransactionState)
def test_what_is_stored_is_what_is_read(state: TransactionState) -> None:
    transaction = replace(OPEN, state=state, next_producer_id=8)
    if state is TransactionState.EMPTY:
        transaction = replace(transaction, partitions=frozenset())
    assert from_value("t", to_value(transaction)) == transaction


# The words of the table in the preface of ending.py.
ANSWERS = {
    "fenced": ErrorCode.PRODUCER_FENCED,
    "invalid": ErrorCode.INVALID_TXN_STATE,
    "again": True,
    "aborts": False,
    "commits": False,
}


def table() -> dict[tuple[str, bool, int], str]:
    """(state, commit, epochs behind) to the word that stands there."""
    assert ending.__doc__ is not None
    found = {}
    for line in ending.__doc__.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] in ANSWERS:
            for cell, (commit, behind) in zip(
                cells[1:], ((False, 1), (False, 0), (True, 1), (True, 0)), strict=True
            ):
                found[cells[0], commit, behind] = cell
    return found


@pytest.mark.parametrize(("state", "commit", "behind"), table())
def test_the_answers_to_end_txn(state: str, commit: bool, behind: int) -> None:
    transaction = replace(OPEN, state=TransactionState(state))
    expected = ANSWERS[table()[state, commit, behind]]
    if isinstance(expected, ErrorCode):
        with pytest.raises(CoordinatorError) as refused:
            is_retry(transaction, PRODUCER_ID, EPOCH - behind, commit=commit, client_version=2)
        assert refused.value.code is expected
    else:
        answer = is_retry(transaction, PRODUCER_ID, EPOCH - behind, commit=commit, client_version=2)
        assert answer is expected


def test_the_table_is_whole() -> None:
    states = {state for state, _, _ in table()}
    assert states == {"Empty", "Ongoing", "CompleteAbort", "CompleteCommit"}

"""May this request end this transaction? Kafka's answers, in Kafka's order.

Since transactions of version 2 each end brings a new epoch. So the epoch of a request says which
transaction it means: the one that is open now, or the one before, whose reply was lost. A delayed
EndTxn touches nothing but its own transaction.

    version 2       | abort               | commit
    the epoch is of | the last | this one | the last | this one
    ----------------|----------|----------|----------|---------
    Empty           | fenced   | aborts   | fenced   | invalid
    Ongoing         | fenced   | aborts   | fenced   | commits
    CompleteAbort   | again    | aborts   | invalid  | invalid
    CompleteCommit  | invalid  | aborts   | again    | invalid

"again" is the answer of before, and nothing happens. In version 1 the epoch stays, and only the
same outcome may be asked for again.
"""

from __future__ import annotations

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.transaction.state import ENDING, TransactionState
from klamm.coordinator.transaction.transaction import (
    EPOCH_BUMP_FROM,
    LAST_USABLE_EPOCH,
    Transaction,
)
from klamm.wire.errors import ErrorCode


def is_retry(
    transaction: Transaction,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    client_version: int,
) -> bool:
    """Judge an EndTxn: True where its outcome is there already, False where it ends the
    transaction now.

    Raises:
        CoordinatorError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS or
            INVALID_TXN_STATE.
    """
    if client_version < EPOCH_BUMP_FROM:
        return _is_retry_v1(transaction, producer_id, producer_epoch, commit)
    if transaction.state in ENDING:
        raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)
    # The epochs were used up, and another producer id has taken over.
    is_of_last_id = (
        transaction.previous_producer_id == producer_id
        and producer_epoch == LAST_USABLE_EPOCH
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != producer_id and not is_of_last_id:
        raise CoordinatorError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # The end of before brought this epoch. Where it did not, because the last transaction was of
    # version 1, the epoch below is a zombie's, and Kafka would tell it the epoch of its successor.
    is_of_last = is_of_last_id or (
        producer_epoch + 1 == transaction.producer_epoch
        and transaction.client_version >= EPOCH_BUMP_FROM
    )
    completed = _completed_by(transaction)
    is_known = producer_epoch == transaction.producer_epoch or (
        completed is not None and is_of_last
    )
    if not is_known:
        raise CoordinatorError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is TransactionState.ONGOING:
        return False
    if completed is not None and is_of_last:
        if completed is not commit:
            raise CoordinatorError(ErrorCode.INVALID_TXN_STATE)
        return True
    if commit:
        raise CoordinatorError(ErrorCode.INVALID_TXN_STATE)
    return False


def _is_retry_v1(
    transaction: Transaction, producer_id: int, producer_epoch: int, commit: bool
) -> bool:
    if transaction.producer_id != producer_id:
        raise CoordinatorError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        raise CoordinatorError(ErrorCode.PRODUCER_FENCED)
    if transaction.state in ENDING:
        raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionState.ONGOING:
        return False
    if _completed_by(transaction) is not commit:
        raise CoordinatorError(ErrorCode.INVALID_TXN_STATE)
    return True


def _completed_by(transaction: Transaction) -> bool | None:
    """Whether the last transaction was committed; None where there was none."""
    if transaction.state is TransactionState.COMPLETE_COMMIT:
        return True
    if transaction.state is TransactionState.COMPLETE_ABORT:
        return False
    return None

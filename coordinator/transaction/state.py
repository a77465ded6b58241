"""The states of a transactional id, and which may follow which.

The rules:

1. A transactional id begins Empty: a producer has asked for its producer id and epoch, and has
   written nothing yet.
2. The first partition that is added makes the transaction Ongoing. Partitions are added to the log
   of the coordinator before anything is written to them, so that no open transaction is forgotten.
3. The end is decided by one record, PrepareCommit or PrepareAbort. Once it is on disk it is the
   outcome, whatever happens afterwards: a start that finds it goes on from here. The producer is
   answered now.
4. Then each partition of the transaction gets its marker, which may be written again after a crash.
   When all markers are on disk, CompleteCommit or CompleteAbort is written, and the next
   transaction may begin. Until then every request waits a moment, and is told to try again.
5. Whoever asks for the producer id of an Ongoing transaction, or lets it run longer than its
   timeout, has it aborted, with a new epoch: PrepareEpochFence is the name of that intention. It is
   never stored, because PrepareAbort with the new epoch says it all.
6. In transactions of version 2 each end brings a new epoch, so that nothing of an ended transaction
   can be taken for a part of the next one. There an abort needs no partition: it may come from
   Empty and from a completed transaction, too.
7. Dead is an id that was not used for `transactional.id.expiration.ms`. A tombstone takes its
   place.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class TransactionState(Enum):
    """The name is that in ListTransactions and DescribeTransactions, the number that in the log."""

    EMPTY = "Empty", 0
    ONGOING = "Ongoing", 1
    PREPARE_COMMIT = "PrepareCommit", 2
    PREPARE_ABORT = "PrepareAbort", 3
    COMPLETE_COMMIT = "CompleteCommit", 4
    COMPLETE_ABORT = "CompleteAbort", 5
    DEAD = "Dead", 6
    PREPARE_EPOCH_FENCE = "PrepareEpochFence", 7

    stored: int

    def __new__(cls, name: str, stored: int) -> TransactionState:
        member = object.__new__(cls)
        member._value_ = name
        member.stored = stored
        return member


_COMPLETE = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
# The next transaction may begin, and the id may expire.
IDLE = _COMPLETE | {TransactionState.EMPTY}
# The outcome stands, but not every partition has its marker yet.
ENDING = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})

PREDECESSORS: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE
    | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
BY_NUMBER = {state.stored: state for state in TransactionState}
BY_NAME = {state.value: state for state in TransactionState}

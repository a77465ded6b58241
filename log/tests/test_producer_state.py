"""Idempotence and transactions, rule by rule (reliability rows 26 and 30).

The model test covers sequences of appends; here stands each rule of its own, those of markers and
verification among them.
"""

import pytest

from klamm.log.append_origin import AppendOrigin
from klamm.log.errors import LogError
from klamm.log.producer_state import ProducerState, VerificationGuard
from klamm.wire.errors import ErrorCode
from klamm.wire.records.batch import INT32_MAX, RecordBatchHeader, read_batch_header
from klamm.wire.records.control import ControlRecordType, EndTransactionMarker
from klamm.wire.records.record import build_batch

CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR
REPLICATION = AppendOrigin.REPLICATION
E = ErrorCode
NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
EPOCH_MAX = 2**15 - 1


def header(
    sequence: int = 0,
    *,
    count: int = 1,
    producer_id: int = 1,
    epoch: int = 0,
    transactional: bool = False,
    control: bool = False,
) -> RecordBatchHeader:
    records = build_batch(
        [(b"k", b"v", (), NOW_MS)] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=-1 if control else sequence,
        transactional=transactional or control,
        control=control,
    )
    return read_batch_header(records)


def marker(*, commit: bool = True, coordinator_epoch: int = 1) -> EndTransactionMarker:
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return EndTransactionMarker(kind, coordinator_epoch)


class Partition:
    """A producer state with the offsets that a log would give."""

    def __init__(self, *, verification_required: bool = False) -> None:
        self.state = ProducerState(verification_required=verification_required)
        self.end_offset = 0

    def append(
        self,
        batch: RecordBatchHeader,
        origin: AppendOrigin = CLIENT,
        *,
        guard: VerificationGuard | None = None,
        end: EndTransactionMarker | None = None,
        version: int = 0,
    ) -> int:
        """Check and apply; return the base offset, the original one for a duplicate."""
        duplicate = self.state.check(
            batch, origin, guard=guard, marker=end, transaction_version=version
        )
        if duplicate is not None:
            return duplicate.first_offset
        base_offset = self.end_offset
        self.completed = self.state.apply(batch, base_offset, marker=end)
        self.end_offset += batch.last_offset_delta + 1
        return base_offset

    def end(
        self, *, epoch: int = 0, producer_id: int = 1, version: int = 0, **fields: int | bool
    ) -> int:
        batch = header(producer_id=producer_id, epoch=epoch, control=True)
        end = marker(**fields)  # type: ignore[arg-type]  # the fields are those of a marker
        return self.append(batch, COORDINATOR, end=end, version=version)

    def refuses(
        self,
        batch: RecordBatchHeader,
        origin: AppendOrigin = CLIENT,
        guard: VerificationGuard | None = None,
    ) -> ErrorCode:
        with pytest.raises(LogError) as raised:
            self.append(batch, origin, guard=guard)
        return raised.value.code


# --- sequences -----------------------------------------------------------------------------------


def test_a_batch_without_a_producer_is_no_business_of_this() -> None:
    partition = Partition()
    partition.append(header(producer_id=-1, epoch=-1, sequence=-1))
    assert not partition.state.entries


def test_the_last_five_batches_are_duplicates_and_the_sixth_is_out_of_order() -> None:
    partition = Partition()
    offsets = [partition.append(header(sequence, count=2)) for sequence in range(0, 12, 2)]
    assert [partition.append(header(sequence, count=2)) for sequence in range(2, 12, 2)] == (
        offsets[1:]
    )
    assert partition.refuses(header(0, count=2)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.end_offset == 12


def test_another_number_of_records_is_no_duplicate() -> None:
    partition = Partition()
    partition.append(header(0, count=3))
    for sequence, count in [(0, 2), (1, 2), (0, 4)]:
        code = partition.refuses(header(sequence, count=count))
        assert code == E.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_go_on_at_zero_after_the_greatest() -> None:
    partition = Partition()
    partition.append(header(INT32_MAX - 1, count=2))
    assert partition.refuses(header(1)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.append(header(0))
    # And a batch may reach over the end.
    other = Partition()
    assert other.append(header(INT32_MAX - 1, count=4)) == 0
    assert other.append(header(2)) == 4
    assert other.append(header(INT32_MAX - 1, count=4)) == 0


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert Partition().append(header(77)) == 0


def test_a_new_epoch_starts_at_zero_and_fences_the_old_one() -> None:
    partition = Partition()
    partition.append(header(0))
    assert partition.refuses(header(1, epoch=1)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.append(header(0, epoch=1))
    assert partition.refuses(header(1)) == E.INVALID_PRODUCER_EPOCH
    # A duplicate is looked for in the current epoch only.
    assert partition.refuses(header(0)) == E.INVALID_PRODUCER_EPOCH


def test_the_batches_of_an_old_epoch_are_no_duplicates_of_the_new_one() -> None:
    partition = Partition()
    assert [partition.append(header(sequence)) for sequence in range(3)] == [0, 1, 2]
    assert [partition.append(header(sequence, epoch=1)) for sequence in range(3)] == [3, 4, 5]
    assert [partition.append(header(sequence, epoch=1)) for sequence in range(3)] == [3, 4, 5]


def test_a_coordinator_writes_without_sequences() -> None:
    partition = Partition()
    for _ in range(2):
        partition.append(header(-1), COORDINATOR)
    assert partition.refuses(header(-1, epoch=-1), COORDINATOR) == E.INVALID_PRODUCER_EPOCH


def test_what_a_leader_has_accepted_is_not_judged_again() -> None:
    partition = Partition()
    partition.append(header(5, epoch=3))
    partition.append(header(99, epoch=1), REPLICATION)
    assert partition.state.entries[1].producer_epoch == 1


# --- transactions --------------------------------------------------------------------------------


def test_a_transaction_holds_back_the_stable_offset_until_its_marker_is_replicated() -> None:
    partition = Partition()
    partition.append(header(0, producer_id=9))
    partition.append(header(0, transactional=True))
    partition.append(header(0, producer_id=2, transactional=True))
    assert partition.state.first_unstable_offset == 1
    assert partition.end() == 3
    assert partition.completed is not None
    assert partition.completed.last_stable_offset == 2
    assert partition.state.first_undecided_offset == 2
    assert partition.state.first_unstable_offset == 1
    partition.state.on_high_watermark_updated(3)
    assert partition.state.first_unstable_offset == 1
    partition.state.on_high_watermark_updated(4)
    assert partition.state.first_unstable_offset == 2
    partition.end(producer_id=2)
    assert partition.completed.last_stable_offset == 5
    partition.state.on_high_watermark_updated(5)
    assert partition.state.first_unstable_offset is None


def test_transactions_that_end_in_another_order_than_they_began() -> None:
    partition = Partition()
    partition.append(header(0, transactional=True))
    partition.append(header(0, producer_id=2, transactional=True))
    partition.end(producer_id=2)
    partition.end()
    assert partition.state.first_unstable_offset == 0
    partition.state.on_high_watermark_updated(3)
    assert partition.state.first_unstable_offset == 0
    partition.state.on_high_watermark_updated(4)
    assert partition.state.first_unstable_offset is None


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction_says_how_it_ended(commit: bool) -> None:
    partition = Partition()
    partition.append(header(0, transactional=True))
    partition.append(header(1, transactional=True))
    partition.end(commit=commit)
    assert partition.completed is not None
    assert partition.completed == (1, 0, 2, not commit, 3)


def test_an_empty_transaction_leaves_no_trace_in_the_index() -> None:
    partition = Partition()
    partition.append(header(0))
    partition.end()
    assert partition.completed is None


def test_a_plain_batch_inside_a_transaction_is_refused() -> None:
    partition = Partition()
    partition.append(header(0, transactional=True))
    assert partition.refuses(header(1)) == E.INVALID_TXN_STATE
    partition.end()
    partition.append(header(1))


def test_a_marker_of_an_older_epoch_or_coordinator_is_refused() -> None:
    partition = Partition()
    partition.append(header(0, epoch=2, transactional=True))
    partition.end(epoch=2, coordinator_epoch=5)
    with pytest.raises(LogError, match="TRANSACTION_COORDINATOR_FENCED"):
        partition.end(epoch=2, coordinator_epoch=4)
    with pytest.raises(LogError, match="INVALID_PRODUCER_EPOCH"):
        partition.end(epoch=1, coordinator_epoch=5)
    partition.end(epoch=2, coordinator_epoch=5)


def test_a_marker_of_transactions_2_must_raise_the_epoch() -> None:
    partition = Partition()
    partition.append(header(0, epoch=2, transactional=True))
    with pytest.raises(LogError, match="INVALID_PRODUCER_EPOCH"):
        partition.end(epoch=2, version=2)
    partition.end(epoch=3, version=2)
    # A retry, after the transaction has ended.
    partition.end(epoch=3, version=2)
    with pytest.raises(LogError, match="INVALID_PRODUCER_EPOCH"):
        partition.end(epoch=2, version=2)


def test_at_the_greatest_epoch_an_equal_one_ends_the_transaction() -> None:
    partition = Partition()
    partition.append(header(0, epoch=EPOCH_MAX, transactional=True))
    partition.end(epoch=EPOCH_MAX, version=2)
    assert partition.state.first_undecided_offset is None


def test_a_marker_with_a_new_epoch_forgets_the_batches() -> None:
    partition = Partition()
    partition.append(header(0, transactional=True))
    partition.end(epoch=1, version=2)
    assert not partition.state.entries[1].batches
    partition.append(header(0, epoch=1, transactional=True))


def test_a_control_batch_that_compaction_has_emptied_changes_nothing() -> None:
    partition = Partition()
    partition.append(header(0, transactional=True))
    partition.append(header(control=True), COORDINATOR)
    assert partition.state.first_undecided_offset == 0


# --- verification (KIP-890) ----------------------------------------------------------------------


def start(
    partition: Partition, sequence: int = 0, epoch: int = 0, *, supports_epoch_bump: bool = False
) -> VerificationGuard | None:
    return partition.state.start_verification(
        1, sequence, epoch, supports_epoch_bump=supports_epoch_bump, now_ms=NOW_MS
    )


def test_the_first_batch_of_a_transaction_needs_its_guard() -> None:
    partition = Partition(verification_required=True)
    batch = header(0, transactional=True)
    assert partition.refuses(batch) == E.INVALID_TXN_STATE
    guard = start(partition)
    assert partition.refuses(batch, guard=VerificationGuard()) == E.INVALID_TXN_STATE
    partition.append(batch, guard=guard)
    # From here on the open transaction is proof enough, and the guard is used up.
    assert start(partition) is None
    partition.append(header(1, transactional=True))
    partition.end()
    assert partition.refuses(header(2, transactional=True), guard=guard) == E.INVALID_TXN_STATE


def test_an_abort_in_between_voids_a_guard() -> None:
    partition = Partition(verification_required=True)
    guard = start(partition)
    partition.end(commit=False)
    assert partition.refuses(header(0, transactional=True), guard=guard) == E.INVALID_TXN_STATE


def test_an_old_epoch_is_named_before_the_missing_guard() -> None:
    partition = Partition(verification_required=True)
    partition.append(header(0, epoch=5))
    assert partition.refuses(header(0, epoch=4, transactional=True)) == E.INVALID_PRODUCER_EPOCH
    with pytest.raises(LogError, match="INVALID_PRODUCER_EPOCH"):
        start(partition, epoch=4)


def test_markers_need_no_guard() -> None:
    Partition(verification_required=True).end()


def test_a_later_sequence_than_the_one_being_verified_waits_for_it() -> None:
    partition = Partition(verification_required=True)
    guard = start(partition, 3)
    assert start(partition, 5) is guard
    later = header(5, transactional=True)
    assert partition.refuses(later, guard=guard) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.append(header(3, transactional=True), guard=guard)


def test_a_producer_of_transactions_2_starts_at_zero() -> None:
    partition = Partition(verification_required=True)
    guard = start(partition, 3, supports_epoch_bump=True)
    batch = header(3, transactional=True)
    assert partition.refuses(batch, guard=guard) == E.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_newer_epoch_takes_a_verification_over() -> None:
    partition = Partition(verification_required=True)
    start(partition, 3)
    guard = start(partition, 7, epoch=1)
    partition.append(header(7, epoch=1, transactional=True), guard=guard)


# --- expiry and snapshots ------------------------------------------------------------------------


def test_idle_producers_are_forgotten_after_a_day() -> None:
    partition = Partition()
    partition.append(header(0))
    partition.append(header(0, producer_id=2, transactional=True))
    partition.state.remove_expired(NOW_MS + DAY_MS - 1)
    assert set(partition.state.entries) == {1, 2}
    partition.state.remove_expired(NOW_MS + DAY_MS)
    # One with an open transaction is not idle.
    assert set(partition.state.entries) == {2}
    partition.append(header(42))


def test_a_forgotten_verification_voids_its_guard() -> None:
    partition = Partition(verification_required=True)
    guard = start(partition)
    partition.state.remove_expired(NOW_MS + DAY_MS)
    assert partition.refuses(header(0, transactional=True), guard=guard) == E.INVALID_TXN_STATE


def test_loading_keeps_open_transactions_and_drops_the_expired() -> None:
    partition = Partition()
    partition.append(header(0, producer_id=3, transactional=True))
    partition.append(header(0, producer_id=2, transactional=True))
    partition.append(header(0))
    loaded = ProducerState()
    loaded.load(list(partition.state.entries.values()), NOW_MS + DAY_MS)
    assert set(loaded.entries) == {2, 3}
    assert loaded.first_undecided_offset == 0
    assert loaded.has_ongoing_transaction(2, 0)
    assert not loaded.has_ongoing_transaction(2, 1)
    loaded.clear()
    assert loaded.first_unstable_offset is None


def test_deleting_records_releases_the_transactions_below() -> None:
    partition = Partition()
    partition.append(header(0, transactional=True))
    partition.end()
    partition.state.on_log_start_offset_incremented(2)
    assert partition.state.first_unstable_offset is None
    assert set(partition.state.entries) == {1}

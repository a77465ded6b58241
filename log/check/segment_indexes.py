"""The indexes of the segment that is being walked over, where they are compared at all."""

from klamm.log.check.findings import Findings
from klamm.log.check.indexes import OffsetIndexCheck, TimeIndexCheck, TxnIndexCheck
from klamm.log.check.listing import SegmentFiles
from klamm.log.check.producers import Aborted
from klamm.log.check.source import Reader
from klamm.log.layout import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_file,
)
from klamm.wire.records.batch import RecordBatchHeader


class SegmentIndexes:
    """Tells each index of what passes by.

    Args:
        log: the name of the segment.
        is_compared: False for a segment whose indexes recovery will make anew.
    """

    def __init__(
        self,
        reader: Reader,
        findings: Findings,
        directory: str,
        files: SegmentFiles,
        log: str,
        *,
        is_compared: bool,
    ) -> None:
        self._offsets: OffsetIndexCheck | None = None
        self._times: TimeIndexCheck | None = None
        self._transactions: TxnIndexCheck | None = None
        self._has_damage = False
        if not is_compared:
            return

        def path(suffix: str, name: str | None) -> str:
            return f"{directory}/{name or segment_file(files.base_offset, suffix)}"

        def read(suffix: str, name: str | None) -> bytes | None:
            if name is not None:
                return reader.read_whole(f"{directory}/{name}")
            if suffix != TXN_INDEX_SUFFIX:
                findings.fault(path(suffix, None), "is missing")
            return None

        data = read(OFFSET_INDEX_SUFFIX, files.offset_index)
        if data is not None:
            offsets_path = path(OFFSET_INDEX_SUFFIX, files.offset_index)
            self._offsets = OffsetIndexCheck(findings, offsets_path, data, files.base_offset, log)
        data = read(TIME_INDEX_SUFFIX, files.time_index)
        if data is not None:
            times_path = path(TIME_INDEX_SUFFIX, files.time_index)
            self._times = TimeIndexCheck(findings, times_path, data, files.base_offset, log)
        # There is no file where no transaction was aborted.
        data = read(TXN_INDEX_SUFFIX, files.txn_index)
        transactions_path = path(TXN_INDEX_SUFFIX, files.txn_index)
        self._transactions = TxnIndexCheck(findings, transactions_path, data or b"")

    def on_batch(self, position: int, header: RecordBatchHeader) -> None:
        """A batch that is as it should be."""
        if self._offsets is not None:
            self._offsets.on_batch(position, header)
        if self._times is not None:
            self._times.on_batch(header)

    def on_damage(self, end: int, next_offset: int | None) -> None:
        """A part of the file, up to `end`, that says nothing.

        Args:
            next_offset: the lowest that may follow; None at the end of the segment.
        """
        self._has_damage = True
        if self._offsets is not None:
            self._offsets.on_damage(end)
        if self._times is not None:
            self._times.on_damage(next_offset)

    def on_abort_marker(
        self, header: RecordBatchHeader, aborted: Aborted | None, *, is_exact: bool
    ) -> None:
        """A marker that aborted a transaction, where anything of that is still known."""
        if self._transactions is None:
            return
        if aborted is not None:
            self._transactions.on_aborted(aborted, is_exact=is_exact)
        elif not is_exact:
            self._transactions.on_unknown(header)

    def at_end(self, size: int) -> None:
        """Nothing more comes in this segment."""
        if self._offsets is not None:
            self._offsets.at_end(size)
        if self._times is not None:
            self._times.at_end()
        if self._transactions is not None and not self._has_damage:
            self._transactions.at_end()

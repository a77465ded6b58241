"""The three indexes of a segment against its batches, which pass by one after the other."""

from collections.abc import Sized

from klamm.log.check.findings import Findings
from klamm.log.check.formats import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    TXN_ENTRY_SIZE,
    TXN_ENTRY_VERSION,
    OffsetEntry,
    TimeEntry,
    TxnEntry,
    offset_entries,
    time_entries,
    txn_entries,
)
from klamm.log.check.producers import Aborted
from klamm.wire.records.batch import RecordBatchHeader


class OffsetIndexCheck:
    """Every entry names a batch: its position, and the offset with which it ends.

    Args:
        log: the name of the segment.
    """

    def __init__(
        self, findings: Findings, path: str, data: bytes, base_offset: int, log: str
    ) -> None:
        self._findings = findings
        self._path = path
        self._log = log
        _check_size(findings, path, data, OFFSET_ENTRY_SIZE)
        entries = list(offset_entries(data, base_offset))
        last = OffsetEntry(-1, base_offset - 1, -1)
        for entry in entries:
            if entry.offset <= last.offset or entry.position <= last.position:
                self._fault(entry, "it does not follow the entry before it")
            last = entry
        # In the order of the file, the next one last.
        self._entries = sorted(entries, key=lambda entry: -entry.position)

    def _fault(self, entry: OffsetEntry, what: str) -> None:
        self._findings.fault(self._path, what, offset=entry.offset, position=entry.at)

    def on_batch(self, position: int, header: RecordBatchHeader) -> None:
        """Compare with a batch that is as it should be."""
        entries = self._entries
        while entries and entries[-1].position <= position:
            entry = entries.pop()
            if entry.position < position:
                self._fault(entry, f"no batch begins at byte {entry.position} of {self._log}")
            elif entry.offset != header.last_offset:
                what = f"the batch at byte {position} of {self._log} ends with offset"
                self._fault(entry, f"{what} {header.last_offset}")

    def on_damage(self, end: int) -> None:
        """Pass over a part of the segment that has no batches."""
        while self._entries and self._entries[-1].position < end:
            self._entries.pop()

    def at_end(self, size: int) -> None:
        """Complain about what points behind the segment."""
        if self._entries:
            entry = self._entries[-1]
            what = f"byte {entry.position} is behind the end of {self._log} at {size}"
            self._fault(entry, what + _and_more(self._entries))


class TimeIndexCheck:
    """Every entry names the batch that brought the greatest timestamp so far; the last one, all.

    Args:
        log: the name of the segment.
    """

    def __init__(
        self, findings: Findings, path: str, data: bytes, base_offset: int, log: str
    ) -> None:
        self._findings = findings
        self._path = path
        self._log = log
        _check_size(findings, path, data, TIME_ENTRY_SIZE)
        entries = list(time_entries(data, base_offset))
        last = TimeEntry(-1, -1, base_offset - 1)
        for entry in entries:
            if entry.timestamp <= last.timestamp or entry.offset <= last.offset:
                self._fault(entry, "it does not follow the entry before it")
            last = entry
        self._last = last
        self._entries = sorted(entries, key=lambda entry: -entry.offset)
        self._greatest = -1
        self._is_certain = True

    def _fault(self, entry: TimeEntry, what: str) -> None:
        self._findings.fault(self._path, what, offset=entry.offset, position=entry.at)

    def on_batch(self, header: RecordBatchHeader) -> None:
        """Compare with a batch that is as it should be."""
        is_greater = header.max_timestamp > self._greatest
        if is_greater:
            self._greatest = header.max_timestamp
        entries = self._entries
        while entries and entries[-1].offset <= header.last_offset:
            entry = entries.pop()
            if entry.offset < header.last_offset:
                self._fault(entry, f"no batch of {self._log} ends with offset {entry.offset}")
            elif self._is_certain and not (is_greater and entry.timestamp == self._greatest):
                what = (
                    f"timestamp {entry.timestamp}, but up to this offset {self._log} has"
                    f" {self._greatest}"
                )
                self._fault(entry, what)

    def on_damage(self, next_offset: int | None) -> None:
        """Pass over batches that can't be read; None where the segment ends with them."""
        self._is_certain = False
        while self._entries and (next_offset is None or self._entries[-1].offset < next_offset):
            self._entries.pop()

    def at_end(self) -> None:
        """Compare the last entry, which a segment gets when it is closed."""
        if self._entries:
            entry = self._entries[-1]
            what = f"no batch of {self._log} ends with offset {entry.offset}"
            self._fault(entry, what + _and_more(self._entries))
        if self._is_certain and not self._entries and self._last.timestamp < self._greatest:
            position = self._last.at + TIME_ENTRY_SIZE if self._last.at >= 0 else 0
            self._findings.fault(
                self._path,
                f"the greatest timestamp of {self._log}, {self._greatest}, is missing",
                position=position,
            )


class TxnIndexCheck:
    """One entry for each transaction that a marker in this segment has aborted."""

    def __init__(self, findings: Findings, path: str, data: bytes) -> None:
        self._findings = findings
        self._path = path
        self._entries: dict[int, TxnEntry] = {}
        self._end = len(data)
        _check_size(findings, path, data, TXN_ENTRY_SIZE)
        last_offset = -1
        for entry in txn_entries(data):
            if entry.version != TXN_ENTRY_VERSION:
                self._fault(entry, f"version {entry.version} is unknown")
            if entry.last_offset <= last_offset or entry.first_offset > entry.last_offset:
                self._fault(entry, "it does not follow the entry before it")
            last_offset = entry.last_offset
            self._entries[entry.last_offset] = entry

    def _fault(self, entry: TxnEntry, what: str) -> None:
        self._findings.fault(self._path, what, offset=entry.last_offset, position=entry.at)

    def on_aborted(self, expected: Aborted, *, is_exact: bool) -> None:
        """Compare with a transaction whose batches and marker are in the log.

        Args:
            is_exact: False where the first batches may be gone: then only that counts which
                readers of committed data need.
        """
        entry = self._entries.pop(expected.last_offset, None)
        if entry is None:
            self._findings.fault(
                self._path,
                f"the transaction of producer {expected.producer_id} from offset"
                f" {expected.first_offset} on, which was aborted here, is missing",
                offset=expected.last_offset,
                position=self._end,
            )
            return
        found = Aborted(*entry[2:])
        is_harmless = (
            found.producer_id == expected.producer_id
            and found.first_offset <= expected.first_offset
        )
        if found != expected if is_exact else not is_harmless:
            self._fault(entry, f"{_text(found)}, the log has {_text(expected)}")

    def on_unknown(self, header: RecordBatchHeader) -> None:
        """Pass a marker whose transaction is no longer known: it may have an entry or none."""
        entry = self._entries.get(header.last_offset)
        if entry is not None and entry.producer_id == header.producer_id:
            del self._entries[header.last_offset]

    def at_end(self) -> None:
        """Complain about entries without a marker."""
        if self._entries:
            entry = next(iter(self._entries.values()))
            what = f"no marker at offset {entry.last_offset} aborts a transaction"
            self._fault(entry, what + _and_more(self._entries))


def _and_more(entries: Sized) -> str:
    """Count the others of which the same is to be said: a segment that is cut short has many."""
    others = len(entries) - 1
    return f"; so it is with {others} more entries" if others else ""


def _text(aborted: Aborted) -> str:
    return (
        f"producer {aborted.producer_id} from {aborted.first_offset} to {aborted.last_offset},"
        f" last stable offset {aborted.last_stable_offset}"
    )


def _check_size(findings: Findings, path: str, data: bytes, entry_size: int) -> None:
    rest = len(data) % entry_size
    if rest:
        what = f"{rest} bytes behind the last whole entry of {entry_size}"
        findings.fault(path, what, position=len(data) - rest)

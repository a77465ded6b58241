"""The leader epochs of the batches, and the checkpoint that says where each of them begins."""

from bisect import bisect_right
from typing import NamedTuple

from klamm.log.check.findings import Findings
from klamm.log.check.text_files import EpochLine
from klamm.log.layout import LOG_START_CHECKPOINT
from klamm.wire.records.batch import RecordBatchHeader


class _Begin(NamedTuple):
    """The first batch of an epoch, and the offset behind the batch before it."""

    path: str
    position: int
    epoch: int
    base_offset: int
    previous_end: int


class EpochCheck:
    """Follows the batches of a log.

    Args:
        path: of the checkpoint.
        lines: what it says; None where it can't be read, and says nothing.
        log_start: what lies below it is deleted, and the checkpoint has forgotten it.
        end: batches from here on may be newer than the checkpoint, and are not compared with it.
        is_clean: whether the checkpoint had the time to follow the log's start.
    """

    def __init__(
        self,
        findings: Findings,
        path: str,
        lines: list[EpochLine] | None,
        *,
        log_start: int,
        end: int,
        is_clean: bool,
    ) -> None:
        self._findings = findings
        self._path = path
        self._lines = lines
        self._known = {line.epoch for line in lines or ()}
        self._starts = [line.start_offset for line in lines or ()]
        self._log_start = log_start
        self._end = end
        self._is_clean = is_clean
        self._latest = -1
        # The epoch of the batch within which the log begins; the checkpoint has it from there on.
        self._divided: int | None = None
        self._begins: dict[int, _Begin] = {}
        # Batches of epochs that the checkpoint does not know: one of the two is wrong.
        self._strangers: list[_Begin] = []
        self._has_damage = False

    def on_batch(
        self, path: str, position: int, header: RecordBatchHeader, previous_end: int
    ) -> None:
        """Follow a batch; the epoch -1 stands for none."""
        epoch = header.partition_leader_epoch
        if epoch == -1:
            return
        if header.base_offset < self._log_start < header.next_offset:
            self._divided = epoch
        is_compared = self._lines is not None and self._log_start <= header.base_offset < self._end
        if epoch == self._latest and (epoch in self._begins or not is_compared):
            return
        begin = _Begin(path, position, epoch, header.base_offset, previous_end)
        if is_compared and epoch not in self._known:
            if not self._strangers or self._strangers[-1].epoch != epoch:
                self._strangers.append(begin)
            return
        if epoch < self._latest:
            what = f"leader epoch {epoch} behind leader epoch {self._latest}"
            self._findings.fault(path, what, offset=header.base_offset, position=position)
        elif is_compared:
            self._begins[epoch] = begin
        self._latest = epoch

    def on_damage(self) -> None:
        """Some batches could not be read, so epochs may begin elsewhere."""
        self._has_damage = True

    def at_end(self, log_end: int, *, has_gaps: bool) -> None:
        """Compare the first batches of the epochs with the lines."""
        if self._lines is None:
            return
        blamed = {self._blame(stranger) for stranger in self._strangers}
        if self._has_damage:
            return
        first = next(iter(self._begins.values()), None)
        for line in self._lines:
            begin = self._begins.get(line.epoch)
            if begin is None:
                # A leader notes its epoch before it has written anything.
                is_ahead = line.start_offset >= min(log_end, self._end)
                is_behind = not self._is_clean and line.start_offset <= self._log_start
                is_divided = (line.epoch, line.start_offset) == (self._divided, self._log_start)
                if not (is_ahead or is_behind or is_divided or has_gaps or line in blamed):
                    self._fault(line, f"no batch has leader epoch {line.epoch}")
            elif not self._fits(line, begin, is_first=begin is first, has_gaps=has_gaps):
                what = f"leader epoch {line.epoch} begins at offset {begin.base_offset}"
                self._fault(line, f"{what}, at byte {begin.position} of {begin.path}")

    def _fits(self, line: EpochLine, begin: _Begin, *, is_first: bool, has_gaps: bool) -> bool:
        start = line.start_offset
        if start == begin.base_offset or (
            has_gaps and begin.previous_end <= start < begin.base_offset
        ):
            return True
        # What was deleted in front of the log took the beginning of its first epoch away.
        return is_first and (
            start == self._log_start or (not self._is_clean and start < begin.base_offset)
        )

    def _blame(self, stranger: _Begin) -> EpochLine | None:
        """Name the line when its own epoch has no batches, and otherwise the batch."""
        assert self._lines is not None
        index = bisect_right(self._starts, stranger.base_offset)
        line = self._lines[index - 1] if index else None
        if line is not None and line.epoch not in self._begins:
            self._fault(line, f"leader epoch {line.epoch}, the batches there have {stranger.epoch}")
            return line
        known = self._beginning if line is None else f"has {line.epoch}"
        self._findings.fault(
            stranger.path,
            f"leader epoch {stranger.epoch}, {self._path} {known}",
            offset=stranger.base_offset,
            position=stranger.position,
        )
        return None

    @property
    def _beginning(self) -> str:
        return f"begins later; by {LOG_START_CHECKPOINT} the log begins at {self._log_start}"

    def _fault(self, line: EpochLine, what: str) -> None:
        if self._lines and line is self._lines[0]:
            what += f"; by {LOG_START_CHECKPOINT} the log begins at {self._log_start}"
        self._findings.fault(self._path, what, offset=line.start_offset, position=line.at)

"""`klamm check DIR...`: read every file of a data directory and name what is wrong.

Standard output has one line for each finding and a last line that sums up; standard error has the
progress of a long check. Exit codes: 0 nothing is wrong (notes are not faults) · 1 there are
faults · 2 the directory can't be checked.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from klamm.broker.commands.contents import BrokerContents
from klamm.broker.commands.usage import UsageError, write_line
from klamm.log.check.directory import check_directories
from klamm.log.check.findings import Finding
from klamm.log.check.source import OsReadableFiles, SharedDirectoryLock
from klamm.log.errors import DirectoryLockedError
from klamm.log.layout import META_PROPERTIES, parse_partition_directory

EXIT_FAULTS = 1
PROGRESS_S = 2.0
MEBIBYTE = 1024 * 1024


def run(options: argparse.Namespace) -> int:
    """Check the directories that the options name.

    Raises:
        UsageError: there is no data directory, or a broker uses it.
    """
    roots = [_root(text) for text in options.directories]
    locks = []
    files = OsReadableFiles()
    try:
        for root in roots:
            _require_data_directory(files, root)
            locks.append(SharedDirectoryLock(root))
        progress = Progress(sum(_sizes(files, roots)))
        summary = check_directories(
            files,
            roots,
            contents=BrokerContents(),
            on_finding=progress.print,
            on_progress=progress.show,
        )
    except DirectoryLockedError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror or error}") from None
    finally:
        for lock in locks:
            lock.release()
    progress.clear()
    write_line(
        f"{summary.faults} faults, {summary.notes} notes in {summary.partitions} partitions"
        f" ({summary.files} files, {summary.bytes} bytes)"
    )
    return EXIT_FAULTS if summary.faults else 0


def _root(text: str) -> str:
    return text.rstrip("/") or "/"


def _require_data_directory(files: OsReadableFiles, root: str) -> None:
    names = files.list_directories(root)
    if META_PROPERTIES in files.list_files(root):
        return
    if not any(parse_partition_directory(name) for name in names):
        raise UsageError(
            f"{root} is not a data directory: it has no {META_PROPERTIES}; "
            "name what a broker has as its --data-dir or in log.dirs"
        )


def _sizes(files: OsReadableFiles, roots: Sequence[str]) -> Iterator[int]:
    for root in roots:
        for directory in [root, *(f"{root}/{name}" for name in files.list_directories(root))]:
            for name in files.list_files(directory):
                yield files.size(f"{directory}/{name}")


class Progress:
    """Findings on standard output, and how far the check is on standard error.

    The line with the progress is written again and again on a terminal, and anew elsewhere.
    """

    def __init__(self, bytes_total: int) -> None:
        self._bytes_total = bytes_total
        self._shown_at = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._is_shown = False

    def show(self, bytes_read: int) -> None:
        now = time.monotonic()
        if now < self._shown_at + PROGRESS_S:
            return
        self._shown_at = now
        self._is_shown = True
        # Some bytes are read twice, and what is put aside is not read at all.
        done = min(bytes_read, self._bytes_total)
        text = f"checked {done // MEBIBYTE} of {self._bytes_total // MEBIBYTE} MiB"
        end = "" if self._is_terminal else "\n"
        start = "\r" if self._is_terminal else ""
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the line with the progress."""
        if self._is_shown and self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False

    def print(self, finding: Finding) -> None:
        self.clear()
        write_line(str(finding))

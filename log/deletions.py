"""Files that wait for their removal, under names that end in `.deleted`.

A segment is taken out of its log by a rename, which is quick, and its files are removed later,
after `file.delete.delay.ms`: whoever was reading it can go on, and the removal of a gigabyte, which
takes long, happens in a thread. A crash in between costs nothing: recovery removes what has that
suffix.
"""

from collections.abc import Callable, Sequence
from functools import partial

from klamm.log.fs import FileSystem


class PendingDeletions:
    """The files of one data directory that are to be removed.

    Nobody has to know the time when files are added: their delay counts from the next `due`.
    """

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._added: list[tuple[str, int]] = []
        # (path, when it is due)
        self._waiting: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._added) + len(self._waiting)

    def add(self, paths: Sequence[str], delay_ms: int) -> None:
        """Have files removed, not before that much time has passed."""
        self._added += [(path, delay_ms) for path in paths]

    def forget(self, directory: str) -> None:
        """Leave the files of a directory alone: it goes as a whole, and may come anew."""
        prefix = f"{directory}/"
        self._added = [entry for entry in self._added if not entry[0].startswith(prefix)]
        self._waiting = [entry for entry in self._waiting if not entry[0].startswith(prefix)]

    def due(self, monotonic_ms: int) -> Callable[[], None] | None:
        """Return what removes the files whose time has come, in any thread; None without any.

        Args:
            monotonic_ms: a clock that never jumps.
        """
        self._waiting += [(path, monotonic_ms + delay_ms) for path, delay_ms in self._added]
        self._added.clear()
        paths = [path for path, due_ms in self._waiting if due_ms <= monotonic_ms]
        if not paths:
            return None
        self._waiting = [entry for entry in self._waiting if entry[1] > monotonic_ms]
        return partial(_remove, self._fs, paths)

    def all(self) -> Callable[[], None]:
        """Return what removes all of the files, however short they have waited."""
        paths = [path for path, _ in (*self._waiting, *self._added)]
        self._waiting.clear()
        self._added.clear()
        return partial(_remove, self._fs, paths)


def _remove(fs: FileSystem, paths: list[str]) -> None:
    for path in paths:
        try:
            fs.remove(path)
        except FileNotFoundError:
            # The same name was used twice, or the partition is gone.
            continue

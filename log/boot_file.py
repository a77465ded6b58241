"""The file .klamm-boot: the boot of the operating system in which the logs here were written.

A killed process loses nothing that it has written, and leaves no more than a half-written end. A
system that stops loses any part of what was not synced. So what recovery finds tells damage from
the mark of a crash, once it is known whether the system has run on since.

The first line is the boot's id, or empty. Each further one is the directory of a partition in which
damage was found so: it stays damage in every later boot, until the partition is opened again.

The id goes with a clean stop, so that nobody takes it for a word about what an Apache Kafka writes
later. One that follows a killed klamm in the same boot leaves it as it is. That does no harm: when
it is killed, Kafka, too, leaves no more than a half-written end; where it was told to preallocate
its files, zeros behind it, which are taken for damage then. Whoever removes the file lets all logs
be judged as after a power cut.
"""

import threading

from klamm.log.checkpoint import replace_file
from klamm.log.fs import FileSystem, read_file
from klamm.log.layout import BOOT_FILE


class BootFile:
    """The file of one data directory, as it was found; changes are on disk after `save`.

    Attributes:
        boot_id: of the boot in which the logs were written; "" where that is not known.
        damaged: the directories of the partitions in which damage was found.
    """

    def __init__(self, fs: FileSystem, root: str) -> None:
        self._fs = fs
        self._root = root
        self._lock = threading.Lock()
        self._saved = self._read()
        self.boot_id, *damaged = self._saved.decode().split("\n")
        self.damaged = {name for name in damaged if name}

    def _read(self) -> bytes:
        """Return what is in the file; what can't be read is not known."""
        try:
            data = read_file(self._fs, f"{self._root}/{BOOT_FILE}")
            data.decode()
        except (OSError, UnicodeDecodeError):
            return b""
        return data

    def is_same_boot(self, directory: str) -> bool:
        """Say whether what a killed process can't have left in a log is damage; if unsure, no."""
        is_current = self.boot_id != "" and self.boot_id == self._fs.boot_id()
        return is_current or directory in self.damaged

    def save(self) -> None:
        """Write it, if anything has changed. May run in any thread.

        Raises:
            OSError: the disk refuses; the file is as it was.
        """
        with self._lock:
            lines = (self.boot_id, *sorted(self.damaged))
            content = "".join(f"{line}\n" for line in lines).encode() if any(lines) else b""
            if content != self._saved:
                replace_file(self._fs, self._root, BOOT_FILE, content)
                self._saved = content

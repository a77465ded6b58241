"""The file .kafka_cleanshutdown: the last process that wrote to a data directory has synced it all.

It is taken away before anything is written, and comes back when everything is on disk. The format
is Kafka's: one line of JSON.
"""

import json

from klamm.log.checkpoint import replace_file
from klamm.log.fs import FileSystem
from klamm.log.layout import CLEAN_SHUTDOWN_FILE

# Where the broker was never registered with a controller.
NO_BROKER_EPOCH = -1
_CURRENT_VERSION = 0


class CleanShutdownFile:
    """The marker of one data directory."""

    def __init__(self, fs: FileSystem, root: str) -> None:
        self._fs = fs
        self._root = root
        self._path = f"{root}/{CLEAN_SHUTDOWN_FILE}"

    def exists(self) -> bool:
        return self._fs.exists(self._path)

    def remove(self) -> None:
        """Take it away for good: one that came back after a crash would hide the crash."""
        self._fs.remove(self._path)
        self._fs.sync_directory(self._root)

    def write(self, broker_epoch: int) -> None:
        """Say that everything is synced.

        Args:
            broker_epoch: by it Kafka's controller tells that nobody has written here since it last
                saw the broker.
        """
        marker = {"version": _CURRENT_VERSION, "brokerEpoch": broker_epoch}
        content = json.dumps(marker, separators=(",", ":")).encode()
        replace_file(self._fs, self._root, CLEAN_SHUTDOWN_FILE, content)

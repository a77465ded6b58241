"""A little room that is kept back, so that a topic can be deleted when the disk is full.

What makes room must not need it first: to delete a topic is a record in the metadata log. A file
beside that log holds the room for it. It is given up when a deletion finds the disk full, and
filled again when the files of the topic are gone.
"""

from __future__ import annotations

import logging

from klamm.log.fs import FileSystem
from klamm.log.layout import RESERVE_FILE

logger = logging.getLogger(__name__)

# A record for each of some thousand topics.
RESERVE_BYTES = 256 * 1024


class Reserve:
    """The file in one directory."""

    def __init__(self, fs: FileSystem, root: str) -> None:
        self._fs = fs
        self._path = f"{root}/{RESERVE_FILE}"

    def fill(self) -> None:
        """Take the room, as far as there is any. May run in any thread."""
        try:
            file = self._fs.open(self._path, create=True)
            missing = RESERVE_BYTES - file.size()
            if missing > 0:
                file.append([bytes(missing)], missing)
        except OSError as error:
            logger.warning("no room can be kept back for deletions: %s", error)

    def release(self) -> bool:
        """Give the room up; say whether there was any."""
        try:
            if self._fs.size(self._path) == 0:
                return False
            self._fs.remove(self._path)
        except OSError:
            return False
        return True

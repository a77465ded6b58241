"""What all logs of a broker share."""

from klamm.log.deletions import PendingDeletions
from klamm.log.fs import FileSystem
from klamm.log.index_cache import IndexCache
from klamm.log.open_files import OpenFiles

OPEN_FILES_MAX = 1024
INDEX_CACHE_BYTES_MAX = 64 * 1024 * 1024


class LogEnvironment:
    """The file system with its two budgets: open files, and memory for indexes of old segments.

    `deletions` are the files of segments that were taken out of their logs.
    """

    def __init__(
        self,
        fs: FileSystem,
        *,
        open_files_max: int = OPEN_FILES_MAX,
        index_cache_bytes_max: int = INDEX_CACHE_BYTES_MAX,
    ) -> None:
        self.fs = fs
        self.files = OpenFiles(fs, open_files_max)
        self.index_cache = IndexCache(index_cache_bytes_max)
        self.deletions = PendingDeletions(fs)

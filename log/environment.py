"""What all logs of a data directory share, and what recovery hands to a log."""

from dataclasses import dataclass

from klamm.log.deletions import PendingDeletions
from klamm.log.fs import FileSystem
from klamm.log.index_cache import IndexCache
from klamm.log.leader_epochs import LeaderEpochCache
from klamm.log.open_files import OpenFiles
from klamm.log.producer_state import ProducerState
from klamm.log.segments import Segments
from klamm.log.snapshots import ProducerSnapshots
from klamm.log.sync import Unsynced

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


@dataclass(slots=True)
class LoadedLog:
    """The state of a log as recovery found or repaired it.

    Attributes:
        unsynced: what the next sync has to do besides the active segment.
        indexes_changed: the active segment's index files are not what its indexes are in memory.
    """

    directory: str
    segments: Segments
    snapshots: ProducerSnapshots
    producers: ProducerState
    leader_epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    recovery_point: int
    unsynced: Unsynced
    indexes_changed: bool

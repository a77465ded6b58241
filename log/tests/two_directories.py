"""Two data directories, and a partition that moves from the first to the second."""

from uuid import UUID

from klamm.log.config import LogConfig
from klamm.log.directories import UNASSIGNED, LogDirectories
from klamm.log.fs import FileSystem
from klamm.log.future import FutureLog
from klamm.log.manager import LogManager
from klamm.log.partition_log import PartitionLog
from klamm.log.tests.support import NOW_MS, TOPIC, TOPIC_ID
from klamm.log.work import run_inline

FIRST, SECOND = "/first", "/second"


def open_two(fs: FileSystem) -> LogDirectories:
    directories = LogDirectories.open(fs, (FIRST, SECOND), node_id=1)
    directories.begin()
    return directories


def open_log(
    directories: LogDirectories,
    config: LogConfig | None = None,
    *,
    partition: int = 0,
    assigned: UUID = UNASSIGNED,
) -> PartitionLog:
    return run_inline(
        directories.opening(TOPIC, partition, TOPIC_ID, config or LogConfig(), NOW_MS, assigned)
    )


def by_root(directories: LogDirectories, root: str) -> LogManager:
    (found,) = [one for one in directories.online if one.root == root]
    return found


def begin_move(directories: LogDirectories, log: PartitionLog, root: str = SECOND) -> FutureLog:
    return FutureLog(log, by_root(directories, root), lambda: NOW_MS)


def end_move(directories: LogDirectories, move: FutureLog) -> None:
    """What follows when the copy has become the log."""
    source = directories.holder_of(move.source)
    directories.environment.fs.sync_directory(move.target.root)
    source.delete_partition(move.source.topic, move.source.partition)
    directories.remove_deleted()

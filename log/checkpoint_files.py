"""The offset checkpoints of one data directory: what its logs look like to the next start.

Each file holds one offset of every partition, of those that are open and of those that are not. So
a file is always written as a whole: the offsets of all logs are noted in the thread that owns them,
which is quick, and written in any thread.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from klamm.log.checkpoint import Offsets, encode_offsets, read_offsets, replace_file
from klamm.log.errors import CorruptFileError
from klamm.log.fs import FileSystem
from klamm.log.layout import (
    BOOT_FILE,
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    parse_partition_directory,
)
from klamm.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

# What each says of a log. Kafka leaves the log start out where a segment begins there. But the
# removal of the segments before it may not be synced yet, and if a crash undid that, the log start
# would move back.
_CHECKPOINTED: dict[str, Callable[[PartitionLog], int | None]] = {
    RECOVERY_POINT_CHECKPOINT: attrgetter("recovery_point"),
    HIGH_WATERMARK_CHECKPOINT: attrgetter("high_watermark"),
    LOG_START_CHECKPOINT: lambda log: log.log_start_to_checkpoint or None,
    CLEANER_OFFSET_CHECKPOINT: attrgetter("cleaner_offset"),
}
CHECKPOINT_FILES = tuple(_CHECKPOINTED)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What the checkpoint files say about one partition.

    cleaner_offset is where its last compaction ended; None when it had none.
    """

    log_start_offset: int = 0
    recovery_point: int = 0
    high_watermark: int = 0
    cleaner_offset: int | None = None


class CheckpointFiles:
    """The checkpoint files of one data directory.

    Raises:
        CorruptFileError: one of them can't be understood.
    """

    def __init__(self, fs: FileSystem, root: str) -> None:
        self._fs = fs
        self._root = root
        # What the files said of partitions that are not open (yet): it is kept until they are
        # opened or removed.
        self._unopened = {name: read_offsets(fs, f"{root}/{name}") for name in CHECKPOINT_FILES}
        _check_emptied(fs, root)
        # Snapshots are numbered, so that a slow thread never replaces a newer checkpoint.
        self._snapshots_taken = 0
        self._snapshots_written = dict.fromkeys(CHECKPOINT_FILES, 0)
        self._written_partitions = {name: set(offsets) for name, offsets in self._unopened.items()}
        self._write_lock = threading.Lock()

    # --- partitions that are not open ---

    def of(self, key: TopicPartition) -> Checkpoints:
        """Return what the files say of a partition that is not open."""
        return Checkpoints(
            log_start_offset=self._unopened[LOG_START_CHECKPOINT].get(key, 0),
            recovery_point=self._unopened[RECOVERY_POINT_CHECKPOINT].get(key, 0),
            high_watermark=self._unopened[HIGH_WATERMARK_CHECKPOINT].get(key, 0),
            cleaner_offset=self._unopened[CLEANER_OFFSET_CHECKPOINT].get(key),
        )

    def expect(self, key: TopicPartition, checkpoints: Checkpoints) -> None:
        """Let the files tell this of a partition that is about to be opened."""
        self._unopened[LOG_START_CHECKPOINT][key] = checkpoints.log_start_offset
        self._unopened[RECOVERY_POINT_CHECKPOINT][key] = checkpoints.recovery_point
        self._unopened[HIGH_WATERMARK_CHECKPOINT][key] = checkpoints.high_watermark
        if checkpoints.cleaner_offset is not None:
            self._unopened[CLEANER_OFFSET_CHECKPOINT][key] = checkpoints.cleaner_offset

    def forget(self, key: TopicPartition) -> None:
        """Drop what the files said of a partition: its log tells from now on, or it is gone."""
        for offsets in self._unopened.values():
            offsets.pop(key, None)

    def forget_namesake(self, key: TopicPartition) -> bool:
        """Make sure that nothing about an earlier partition of that name is written any more.

        Returns:
            Whether it is still on disk, so that the files have to be written anew.
        """
        self.forget(key)
        with self._write_lock:
            # Snapshots that were taken before may hold it, and are dropped.
            self._snapshots_written = dict.fromkeys(CHECKPOINT_FILES, self._snapshots_taken)
            return any(key in written for written in self._written_partitions.values())

    # --- writing ---

    def writer(
        self, logs: Mapping[TopicPartition, PartitionLog], names: Sequence[str]
    ) -> Callable[[], None]:
        """Note where all logs are now; the returned callable writes that down, in any thread.

        When it returns, the named files hold at least what was true when this was called.
        """
        contents = self._snapshot(logs, names)
        self._snapshots_taken += 1
        number = self._snapshots_taken

        def write() -> None:
            self._write(number, contents)

        return write

    def _snapshot(
        self, logs: Mapping[TopicPartition, PartitionLog], names: Sequence[str]
    ) -> dict[str, Offsets]:
        contents = {name: dict(self._unopened[name]) for name in names}
        for name, offsets in contents.items():
            found = zip(logs, map(_CHECKPOINTED[name], logs.values()), strict=True)
            offsets.update((key, offset) for key, offset in found if offset is not None)
        return contents

    def _write(self, number: int, contents: dict[str, Offsets]) -> None:
        with self._write_lock:
            newer = [name for name in contents if number > self._snapshots_written[name]]
            if not newer:
                return
            for name in newer:
                content = encode_offsets(contents[name])
                replace_file(self._fs, self._root, name, content, sync_directory=False)
            self._fs.sync_directory(self._root)
            for name in newer:
                self._snapshots_written[name] = number
                self._written_partitions[name] = set(contents[name])


def _check_emptied(fs: FileSystem, root: str) -> None:
    """Look for checkpoints of no bytes in a directory that has data.

    Apache Kafka makes its files so, writes them within a minute and these two whenever it stops;
    later each is replaced as a whole, as it is here from the beginning. So after a kill such a file
    is as Kafka has made it, unless klamm has been here, too: then who knows. After a clean stop it
    has lost its content.

    Raises:
        CorruptFileError: a clean stop can't have left it.
    """
    paths = [f"{root}/{name}" for name in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT)]
    emptied = [path for path in paths if fs.exists(path) and fs.size(path) == 0]
    if not emptied or not _has_data(fs, root):
        return
    if fs.exists(f"{root}/{CLEAN_SHUTDOWN_FILE}"):
        raise CorruptFileError(emptied[0], "has no bytes, though there are logs that were closed")
    for path in emptied if fs.exists(f"{root}/{BOOT_FILE}") else ():
        logger.warning("%s has no bytes: what it said of the logs here is not known", path)


def _has_data(fs: FileSystem, root: str) -> bool:
    """Say whether any partition holds batches."""
    partitions = filter(parse_partition_directory, fs.list_directories(root))
    return any(
        name.endswith(LOG_SUFFIX) and fs.size(f"{root}/{partition}/{name}") > 0
        for partition in partitions
        for name in fs.list_files(f"{root}/{partition}")
    )

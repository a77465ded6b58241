"""All logs of one data directory: who owns it, how it was left, and its checkpoints.

The way of a directory through a run:

1. `open`: lock it, check that it is ours, read the checkpoints, and ask `admit`, who knows what is
   in the logs; a directory that is refused so far is left as it was. Then remove what was being
   deleted, and take the clean shutdown marker away (synced: from now on a crash is a crash).
2. `open_partition` for every partition that the metadata knows, `set_aside_strays` for the rest.
3. `checkpoint_writer` now and then. The recovery point decides how much the next start reads.
   `environment.deletions.due` as well, which removes the files of deleted segments.
4. `close`: sync every log, write the checkpoints, and only then the marker. `abandon` instead
   leaves the directory as a crash would.

All methods belong to one thread, except what is said to run in any: the callable that
`checkpoint_writer` returns, and `remove_deleted`.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from uuid import UUID, uuid4

from klamm.log.checkpoint import (
    ZERO_UUID,
    Offsets,
    encode_offsets,
    encode_uuid,
    read_offsets,
    read_partition_metadata,
    replace_file,
)
from klamm.log.config import LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.errors import DirectoryLockedError, InconsistentDirectoryError, StorageError
from klamm.log.fs import FileSystem, Lock, read_file
from klamm.log.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    DELETE_DIRECTORY_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_DIRECTORY_SUFFIX,
    parse_future_directory,
    parse_partition_directory,
    partition_directory,
    renamed_directory,
)
from klamm.log.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    random_uuid,
)
from klamm.log.partition_log import PartitionLog
from klamm.log.producer_state import PRODUCER_ID_EXPIRATION_MS
from klamm.log.recovery import Checkpoints, open_log

logger = logging.getLogger(__name__)

TopicPartition = tuple[str, int]

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
# Kafka's version of the marker.
_CLEAN_SHUTDOWN_VERSION = 0
# Where the broker was never registered with a controller.
NO_BROKER_EPOCH = -1


class LogManager:
    """The logs of one data directory; made by `open`.

    Attributes:
        root: path of the directory.
        cluster_id: 22 characters, made up when the directory is new.
        directory_id: the directory's own id.
        was_clean: whether the last run ended with `close`.
        environment: what the logs share.
        failure: why the directory is offline; None while it is served.
        on_failed: asked for when a disk error takes the whole directory offline. Without it a log
            that fails goes offline alone, and the others of the directory are served.
    """

    def __init__(
        self,
        environment: LogEnvironment,
        root: str,
        lock: Lock,
        properties: MetaProperties,
        *,
        was_clean: bool,
        checkpoints: dict[str, Offsets],
        producer_id_expiration_ms: int,
    ) -> None:
        self.environment = environment
        self.root = root
        self.cluster_id = properties.cluster_id
        self.directory_id = properties.directory_id
        self.was_clean = was_clean
        self.failure: OSError | None = None
        self.on_failed: Callable[[LogManager, OSError], None] | None = None
        self._fs = environment.fs
        self._lock = lock
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[TopicPartition, PartitionLog] = {}
        # What the files said of partitions that are not open (yet): it is kept until they are
        # opened or removed.
        self._unopened = checkpoints
        self._failed: set[TopicPartition] = set()
        # Copies of partitions that an earlier run has not finished.
        self.unfinished: dict[TopicPartition, list[str]] = {}
        # Snapshots are numbered, so that a slow thread never replaces a newer checkpoint.
        self._snapshots_taken = 0
        self._snapshots_written = dict.fromkeys(CHECKPOINT_FILES, 0)
        self._written_partitions = {name: set(offsets) for name, offsets in checkpoints.items()}
        self._write_lock = threading.Lock()
        self._removal_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        fs: FileSystem,
        root: str,
        *,
        node_id: int,
        cluster_id: str | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        admit: Callable[[MetaProperties], None] = lambda _: None,
        environment: LogEnvironment | None = None,
    ) -> "LogManager":
        """Take possession of a data directory, which is made when it is not there.

        Args:
            admit: raises a StorageError when the directory is to be left alone.
            environment: what its logs share with those of other directories.

        Raises:
            DirectoryLockedError: another process uses it.
            InconsistentDirectoryError: it belongs to another node or cluster, or to a newer format.
            CorruptFileError: its meta.properties or a checkpoint can't be understood.
            OSError: it can't be made, read or written.
        """
        _make_durable_directory(fs, root)
        try:
            lock = fs.lock(f"{root}/{LOCK_FILE}")
        except BlockingIOError as error:
            raise DirectoryLockedError(
                f"{root} is in use by another broker; stop that one, or choose another directory"
            ) from error
        try:
            is_new = not fs.exists(f"{root}/{META_PROPERTIES}")
            properties = _load_properties(fs, root, node_id, cluster_id)
            checkpoints = {name: read_offsets(fs, f"{root}/{name}") for name in CHECKPOINT_FILES}
            admit(properties)
            marker = f"{root}/{CLEAN_SHUTDOWN_FILE}"
            was_clean = fs.exists(marker)
            manager = cls(
                environment or LogEnvironment(fs),
                root,
                lock,
                properties,
                was_clean=was_clean,
                checkpoints=checkpoints,
                producer_id_expiration_ms=producer_id_expiration_ms,
            )
            manager.remove_deleted()
            manager._find_unfinished()
            if was_clean:
                # A marker that came back after a crash would hide it.
                fs.remove(marker)
                fs.sync_directory(root)
        except BaseException:
            lock.release()
            raise
        if not is_new and not was_clean:
            logger.info("%s was not closed: recovering what was written last", root)
        return manager

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    # --- partitions ---

    def open_partition(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig, now_ms: int
    ) -> PartitionLog:
        """Open a partition's log, or make it when there is none of that topic id.

        A directory of that name with another topic id belongs to a topic that was deleted just
        before a crash. It is set aside and not removed: the id has no checksum, and a flipped bit
        must not delete what is in there.

        Raises:
            CorruptLogError, CorruptFileError: this partition is damaged; the others are not.
        """
        key = (topic, partition)
        assert key not in self._logs
        directory = self._directory(topic, partition)
        exists = self._fs.exists(directory)
        try:
            if exists:
                found = read_partition_metadata(self._fs, f"{directory}/{PARTITION_METADATA}")
                if found not in (topic_id, ZERO_UUID):
                    self.set_aside(*key, f"it is of topic id {encode_uuid(found)}")
                    exists = False
            log = self._open(key, topic_id, config, now_ms, exists=exists)
        except (StorageError, OSError):
            # What it was left in is for the next start to find out.
            self._failed.add(key)
            raise
        self._adopt(key, log)
        return log

    def _adopt(self, key: TopicPartition, log: PartitionLog) -> None:
        self._failed.discard(key)
        self._forget_unopened(key)
        self._logs[key] = log
        if self.on_failed is not None:
            log.on_disk_error = self.on_disk_error

    def _open(
        self,
        key: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        now_ms: int,
        *,
        exists: bool,
        clean: bool = False,
    ) -> PartitionLog:
        topic, partition = key
        directory = self._directory(topic, partition)
        if not exists:
            self._forget_checkpoints(key)
            self._fs.make_directory(directory)
        log = open_log(
            self.environment,
            directory,
            topic,
            partition,
            config,
            clean=clean or self.was_clean or not exists,
            checkpoints=Checkpoints(
                log_start_offset=self._unopened[LOG_START_CHECKPOINT].get(key, 0),
                recovery_point=self._unopened[RECOVERY_POINT_CHECKPOINT].get(key, 0),
                high_watermark=self._unopened[HIGH_WATERMARK_CHECKPOINT].get(key, 0),
                cleaner_offset=self._unopened[CLEANER_OFFSET_CHECKPOINT].get(key),
            ),
            now_ms=now_ms,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            on_recovery_point_lowered=self.write_checkpoints,
        )
        if log.topic_id != topic_id:
            log.set_topic_id(topic_id)
        return log

    def _find_unfinished(self) -> None:
        for name in self._fs.list_directories(self.root):
            key = parse_future_directory(name)
            if key is not None:
                self.unfinished.setdefault(key, []).append(name)

    def has(self, topic: str, partition: int) -> bool:
        """Whether there is a directory of that partition, open or not."""
        return self._fs.exists(self._directory(topic, partition))

    def _directory(self, topic: str, partition: int) -> str:
        return f"{self.root}/{partition_directory(topic, partition)}"

    def _rename(self, topic: str, partition: int, suffix: str) -> str:
        name = renamed_directory(topic, partition, uuid4().hex, suffix)
        self._fs.rename(self._directory(topic, partition), f"{self.root}/{name}")
        return name

    def delete_partition(self, topic: str, partition: int) -> None:
        """Forget a partition and put its directory away; `remove_deleted` does the rest.

        Whoever reads from it may go on. A sync of it that is under way does no harm.
        """
        key = (topic, partition)
        log = self._logs.pop(key, None)
        if log is not None:
            log.on_deleted()
        self._failed.discard(key)
        self._forget_unopened(key)
        if self._fs.exists(self._directory(topic, partition)):
            self._rename(topic, partition, DELETE_DIRECTORY_SUFFIX)

    def remove_deleted(self) -> None:
        """Remove the directories that delete_partition put away. May run in any thread."""
        fs = self._fs
        with self._removal_lock:
            names = [
                name
                for name in fs.list_directories(self.root)
                if name.endswith(DELETE_DIRECTORY_SUFFIX)
            ]
            if not names:
                return
            # Before anything is removed: half a partition must not come back under its old name.
            fs.sync_directory(self.root)
            for name in names:
                directory = f"{self.root}/{name}"
                for file in fs.list_files(directory):
                    fs.remove(f"{directory}/{file}")
                fs.remove_directory(directory)

    def set_aside_strays(self, known: set[TopicPartition]) -> list[str]:
        """Rename the directories of partitions that no topic owns; return their new names.

        They are kept for somebody to look at: losing a topic's metadata must not lose its data.
        """
        renamed: list[str] = []
        for name in self._fs.list_directories(self.root):
            key = parse_partition_directory(name)
            if key is None or key in known or key in self._logs:
                continue
            renamed.append(self.set_aside(*key, "it belongs to no topic"))
        return renamed

    def set_aside(self, topic: str, partition: int, reason: str) -> str:
        """Rename the directory of a partition that is not open; return its new name."""
        key = (topic, partition)
        new_name = self._rename(*key, STRAY_DIRECTORY_SUFFIX)
        self._forget_unopened(key)
        logger.warning("%s is set aside as %s: %s", partition_directory(*key), new_name, reason)
        return new_name

    # --- moves, see future.py ---

    def expect(self, source: PartitionLog, recovery_point: int) -> None:
        """Let the checkpoints tell of a log that is about to come here."""
        key = (source.topic, source.partition)
        self._unopened[LOG_START_CHECKPOINT][key] = source.log_start_to_checkpoint
        self._unopened[RECOVERY_POINT_CHECKPOINT][key] = recovery_point
        self._unopened[HIGH_WATERMARK_CHECKPOINT][key] = source.high_watermark
        if source.cleaner_offset is not None:
            self._unopened[CLEANER_OFFSET_CHECKPOINT][key] = source.cleaner_offset

    def adopt(self, directory: str, source: PartitionLog, now_ms: int) -> PartitionLog:
        """Give a finished and closed copy of a log the partition's own name, and open it."""
        key = (source.topic, source.partition)
        self.expect(source, source.log_end_offset)
        self._fs.rename(directory, self._directory(*key))
        try:
            log = self._open(key, source.topic_id, source.config, now_ms, exists=True, clean=True)
        except BaseException:
            # By its name it would be taken for the log, which goes on elsewhere.
            self._fs.rename(self._directory(*key), directory)
            raise
        log.on_renamed()
        self._adopt(key, log)
        return log

    def put_away(self, directory: str) -> None:
        """Leave the directory of a copy that is not needed any more to `remove_deleted`."""
        name = directory.rpartition("/")[2]
        key = parse_future_directory(name)
        assert key is not None
        self._forget_unopened(key)
        new_name = renamed_directory(*key, uuid4().hex, DELETE_DIRECTORY_SUFFIX)
        self._fs.rename(directory, f"{self.root}/{new_name}")

    def take_unfinished(self) -> list[TopicPartition]:
        """Put the copies away that an earlier run has not finished; return what they were of."""
        keys = list(self.unfinished)
        for names in self.unfinished.values():
            for name in names:
                self.put_away(f"{self.root}/{name}")
        self.unfinished.clear()
        return keys

    # --- checkpoints ---

    def checkpoint_writer(self, names: Sequence[str] = CHECKPOINT_FILES) -> Callable[[], None]:
        """Note where all logs are now; the returned callable writes that down, in any thread.

        When it returns, these checkpoints hold at least what was true when this was called.

        Args:
            names: the checkpoint files to write.
        """
        contents = self._snapshot(names)
        self._snapshots_taken += 1
        number = self._snapshots_taken

        def write() -> None:
            self._write(number, contents)

        return write

    def write_checkpoints(self) -> None:
        """Write all checkpoints now."""
        self.checkpoint_writer()()

    def checkpoint_log_start_offsets(self) -> None:
        """Make the logs' start offsets durable, so that they never move back."""
        self.checkpoint_writer((LOG_START_CHECKPOINT,))()

    def _snapshot(self, names: Sequence[str]) -> dict[str, Offsets]:
        contents = {name: dict(self._unopened[name]) for name in names}
        for name, offsets in contents.items():
            offset_of = _CHECKPOINTED[name]
            found = zip(self._logs, map(offset_of, self._logs.values()), strict=True)
            offsets.update((key, offset) for key, offset in found if offset is not None)
        return contents

    def _write(self, number: int, contents: dict[str, Offsets]) -> None:
        with self._write_lock:
            newer = [name for name in contents if number > self._snapshots_written[name]]
            if not newer:
                return
            for name in newer:
                content = encode_offsets(contents[name])
                replace_file(self._fs, self.root, name, content, sync_directory=False)
            self._fs.sync_directory(self.root)
            for name in newer:
                self._snapshots_written[name] = number
                self._written_partitions[name] = set(contents[name])

    def _forget_unopened(self, key: TopicPartition) -> None:
        for offsets in self._unopened.values():
            offsets.pop(key, None)

    def _forget_checkpoints(self, key: TopicPartition) -> None:
        """Make sure that no checkpoint of an earlier partition of that name is taken for ours."""
        self._forget_unopened(key)
        with self._write_lock:
            # Snapshots that were taken before may hold it, and are dropped.
            self._snapshots_written = dict.fromkeys(CHECKPOINT_FILES, self._snapshots_taken)
            is_written = any(key in written for written in self._written_partitions.values())
        if is_written:
            self.write_checkpoints()

    # --- failure ---

    def fail(self, error: OSError) -> None:
        """Take the whole directory offline, until the next start. May run in any thread."""
        assert self.on_failed is not None, "this directory can't be spared"
        if self.failure is None:
            self.failure = error
            for log in list(self._logs.values()):
                log.is_offline = True
            self.on_failed(self, error)

    def on_disk_error(self, error: OSError) -> None:
        """A log of this directory can't be read or written."""
        if self.on_failed is not None:
            self.fail(error)

    # --- the end ---

    def close(self, threads: int = 1, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Shut down cleanly: everything synced, then the marker that says so.

        Without a marker the next start reads the logs: when a log is offline or could not be
        opened, there is none. What has nothing unsynced is not touched.

        Args:
            threads: how many logs are written out at the same time. A disk syncs several files in
                hardly more time than one.
            broker_epoch: for the marker. By it Kafka's controller tells that nobody has written
                here since it last saw the broker.

        Raises:
            OSError: a sync failed; the directory was abandoned.
        """
        try:
            is_clean = not self._failed and not any(log.is_offline for log in self._logs.values())
            with ThreadPoolExecutor(threads) as pool:
                # One after another where that is asked for: then a test can tell what comes when.
                write_out_all = pool.map if threads > 1 else map
                for _ in write_out_all(PartitionLog.write_out, self._logs.values()):
                    pass
            self.write_checkpoints()
            if is_clean:
                marker = {"version": _CLEAN_SHUTDOWN_VERSION, "brokerEpoch": broker_epoch}
                content = json.dumps(marker, separators=(",", ":")).encode()
                replace_file(self._fs, self.root, CLEAN_SHUTDOWN_FILE, content)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of all files and of the lock, and write nothing."""
        for log in self._logs.values():
            log.close_files()
        self._logs.clear()
        self._lock.release()


def _make_durable_directory(fs: FileSystem, path: str) -> None:
    """Make a directory and those above it, so that they are still there after a crash."""
    parents: list[str] = []
    missing = path
    while missing and not fs.exists(missing):
        missing = missing.rpartition("/")[0]
        parents.append(missing or ("/" if path.startswith("/") else "."))
    fs.make_directory(path)
    for parent in parents:
        fs.sync_directory(parent)


def _load_properties(
    fs: FileSystem, root: str, node_id: int, cluster_id: str | None
) -> MetaProperties:
    path = f"{root}/{META_PROPERTIES}"
    if not fs.exists(path):
        properties = MetaProperties(
            cluster_id or encode_uuid(random_uuid()), node_id, random_uuid()
        )
        replace_file(fs, root, META_PROPERTIES, encode_meta_properties(properties))
        return properties
    properties = decode_meta_properties(read_file(fs, path), path)
    if properties.node_id != node_id:
        raise InconsistentDirectoryError(
            f"{root} belongs to node {properties.node_id}, this is node {node_id};"
            " set node.id accordingly, or choose another directory"
        )
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise InconsistentDirectoryError(
            f"{root} belongs to cluster {properties.cluster_id}, this is cluster {cluster_id};"
            " choose another directory"
        )
    return properties

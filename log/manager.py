"""All logs of one data directory: who owns it, how it was left, and its checkpoints.

The way of a directory through a run:

1. `claim`: lock it, check that it is ours, read the checkpoints, and ask `admit`, who knows what is
   in the logs; a directory that is refused so far is left as it was. Then `begin`: remove what was
   being deleted, and take the clean shutdown marker away (synced: from now on a crash is a crash).
   `open` is both.
2. `open_partition` for every partition that the metadata knows, `set_aside_strays` for the rest,
   then `note_boot`.
3. `checkpoint_writer` now and then. The recovery point decides how much the next start reads.
   `environment.deletions.due` as well, which removes the files of deleted segments.
4. `close`: sync every log, write the checkpoints, and only then the marker. `abandon` instead
   leaves the directory as a crash would.

All methods belong to one thread, except what is said to run in any: the callable that
`checkpoint_writer` returns, and `remove_deleted`. `opening` is `open_partition` for a thread that
must not wait for the disk (work.py).
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID, uuid4

from klamm.log.boot_file import BootFile
from klamm.log.checkpoint import ZERO_UUID, encode_uuid, read_partition_metadata
from klamm.log.checkpoint_files import CHECKPOINT_FILES, CheckpointFiles, Checkpoints
from klamm.log.clean_shutdown import NO_BROKER_EPOCH, CleanShutdownFile
from klamm.log.config import LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.errors import CorruptLogError, DirectoryLockedError, StorageError
from klamm.log.fs import FileSystem, Lock
from klamm.log.layout import (
    DELETE_DIRECTORY_SUFFIX,
    LOCK_FILE,
    META_PROPERTIES,
    PARTITION_METADATA,
    STRAY_DIRECTORY_SUFFIX,
    TopicPartition,
    parse_future_directory,
    parse_partition_directory,
    partition_directory,
    renamed_directory,
)
from klamm.log.meta_properties import MetaProperties, ensure_meta_properties
from klamm.log.partition_log import PartitionLog
from klamm.log.producer_state import PRODUCER_ID_EXPIRATION_MS
from klamm.log.recovery import open_log
from klamm.log.work import Work, run_inline

logger = logging.getLogger(__name__)


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
        is_new: bool,
        was_clean: bool,
        checkpoints: CheckpointFiles,
        producer_id_expiration_ms: int,
    ) -> None:
        self.environment = environment
        self.root = root
        self.cluster_id = properties.cluster_id
        self.directory_id = properties.directory_id
        self.was_clean = was_clean
        self._is_new = is_new
        self.failure: OSError | None = None
        self.on_failed: Callable[[LogManager, OSError], None] | None = None
        self._fs = environment.fs
        self._lock = lock
        self._boot = BootFile(environment.fs, root)
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._checkpoints = checkpoints
        # Partitions that could not be opened.
        self._failed: set[TopicPartition] = set()
        # Those that may be as a crash has left them: nobody has looked at them in this run. After a
        # clean stop there are none, whether they are opened or not.
        self._unrecovered: set[TopicPartition] = set()
        # Copies of partitions that an earlier run has not finished.
        self.unfinished: dict[TopicPartition, list[str]] = {}
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
        """Take possession of a data directory, which is made when it is not there; see `claim`."""
        manager = cls.claim(
            fs,
            root,
            node_id=node_id,
            cluster_id=cluster_id,
            producer_id_expiration_ms=producer_id_expiration_ms,
            admit=admit,
            environment=environment,
        )
        try:
            manager.begin()
        except BaseException:
            manager.abandon()
            raise
        return manager

    @classmethod
    def claim(
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
        """Keep others out of a data directory, and find out how it was left.

        One that is new is made and gets its ids. In any other nothing is changed before `begin`.

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
            properties = ensure_meta_properties(fs, root, node_id, cluster_id)
            checkpoints = CheckpointFiles(fs, root)
            admit(properties)
            manager = cls(
                environment or LogEnvironment(fs),
                root,
                lock,
                properties,
                is_new=is_new,
                was_clean=CleanShutdownFile(fs, root).exists(),
                checkpoints=checkpoints,
                producer_id_expiration_ms=producer_id_expiration_ms,
            )
            manager._find_partitions()
        except BaseException:
            lock.release()
            raise
        return manager

    def begin(self) -> None:
        """Write here from now on: a stop without `close` is a crash.

        Raises:
            OSError: the directory can't be written.
        """
        self.remove_deleted()
        if self.was_clean:
            CleanShutdownFile(self._fs, self.root).remove()
        elif not self._is_new:
            logger.info("%s was not closed: recovering what was written last", self.root)

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
        """Open a partition's log here and now; see `opening`."""
        return run_inline(self.opening(topic, partition, topic_id, config, now_ms))

    def opening(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig, now_ms: int
    ) -> Work[PartitionLog]:
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
            log = yield from self._open(key, topic_id, config, now_ms, exists=exists)
        except CorruptLogError as error:
            self._failed.add(key)
            self._unrecovered.discard(key)
            if error.offset >= self._checkpoints.of(key).recovery_point:
                # In another boot it could be taken for the mark of a crash.
                self._boot.damaged.add(partition_directory(*key))
                yield self._save_boot
            raise
        except (StorageError, OSError):
            # What it was left in is for the next start to find out.
            self._failed.add(key)
            self._unrecovered.add(key)
            raise
        self._adopt(key, log)
        return log

    def _adopt(self, key: TopicPartition, log: PartitionLog) -> None:
        self._forget_unopened(key)
        self._logs[key] = log
        if self.on_failed is not None:
            log.on_disk_error = self.on_disk_error

    def _forget_unopened(self, key: TopicPartition) -> None:
        """Drop what is known of a partition that is not open: now it is, or it is gone."""
        self._failed.discard(key)
        self._unrecovered.discard(key)
        self._boot.damaged.discard(partition_directory(*key))
        self._checkpoints.forget(key)

    def _open(
        self,
        key: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        now_ms: int,
        *,
        exists: bool,
        clean: bool = False,
    ) -> Work[PartitionLog]:
        topic, partition = key
        directory = self._directory(topic, partition)
        if not exists:
            synced_to = self._checkpoints.of(key).recovery_point
            if synced_to > 0:
                # A topic that was deleted and made again just before a crash leaves this, too.
                logger.warning(
                    "%s is not there any more, and was synced up to offset %d: it is made anew,"
                    " empty",
                    directory,
                    synced_to,
                )
            if self._checkpoints.forget_namesake(key):
                yield self.checkpoint_writer()
            self._fs.make_directory(directory)
        log = open_log(
            self.environment,
            directory,
            topic,
            partition,
            config,
            clean=clean or self.was_clean or not exists,
            is_same_boot=self._boot.is_same_boot(partition_directory(*key)),
            checkpoints=self._checkpoints.of(key),
            now_ms=now_ms,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            on_recovery_point_lowered=self.write_checkpoints,
        )
        if log.topic_id != topic_id:
            # Nobody else knows the log yet, so a thread may have it.
            yield partial(log.set_topic_id, topic_id)
        return log

    def _find_partitions(self) -> None:
        for name in self._fs.list_directories(self.root):
            key = parse_future_directory(name)
            if key is not None:
                self.unfinished.setdefault(key, []).append(name)
            key = parse_partition_directory(name)
            if key is not None and not self.was_clean:
                self._unrecovered.add(key)

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
            self._save_boot()

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

    def note_boot(self) -> None:
        """Let the next start know in which boot of the system the logs were written.

        Only when all were opened: a log that a crash of the system has torn must not be judged as
        one of a killed process, when this one is killed before it has come to it.
        """
        if not self._unrecovered:
            self._boot.boot_id = self._fs.boot_id()
            self._save_boot()

    def forget_boot(self) -> None:
        """A sync has failed, and the kernel may drop what it could not write: as in a crash."""
        self._boot.boot_id = ""
        self._save_boot()

    def _save_boot(self) -> None:
        try:
            self._boot.save()
        except OSError as error:
            logger.warning("the next start may not tell damage from a crash: %s", error)

    # --- moves, see future.py ---

    def expect(self, source: PartitionLog, recovery_point: int) -> None:
        """Let the checkpoints tell of a log that is about to come here."""
        self._checkpoints.expect(
            (source.topic, source.partition),
            Checkpoints(
                log_start_offset=source.log_start_to_checkpoint,
                recovery_point=recovery_point,
                high_watermark=source.high_watermark,
                cleaner_offset=source.cleaner_offset,
            ),
        )

    def adopt(self, directory: str, source: PartitionLog, now_ms: int) -> PartitionLog:
        """Give a finished and closed copy of a log the partition's own name, and open it."""
        key = (source.topic, source.partition)
        self.expect(source, source.log_end_offset)
        self._fs.rename(directory, self._directory(*key))
        try:
            log = run_inline(
                self._open(key, source.topic_id, source.config, now_ms, exists=True, clean=True)
            )
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
        self._checkpoints.forget(key)
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
        return self._checkpoints.writer(self._logs, names)

    def write_checkpoints(self) -> None:
        """Write all checkpoints now."""
        self.checkpoint_writer()()

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

        Without a marker the next start reads the logs: when a log is offline, could not be opened,
        or was not opened and not closed before, there is none. What has nothing unsynced is not
        touched.

        Args:
            threads: how many logs are written out at the same time. A disk syncs several files in
                hardly more time than one.
            broker_epoch: for the marker.

        Raises:
            OSError: a sync failed; the directory was abandoned.
        """
        try:
            has_offline = any(log.is_offline for log in self._logs.values())
            is_clean = not (has_offline or self._failed or self._unrecovered)
            with ThreadPoolExecutor(threads) as pool:
                # One after another where that is asked for: then a test can tell what comes when.
                write_out_all = pool.map if threads > 1 else map
                for _ in write_out_all(PartitionLog.write_out, self._logs.values()):
                    pass
            self.write_checkpoints()
            if is_clean:
                CleanShutdownFile(self._fs, self.root).write(broker_epoch)
                self._boot.boot_id = ""
                self._save_boot()
        except OSError:
            self.forget_boot()
            raise
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
    for directory in [*reversed(parents[:-1]), path]:
        fs.make_directory(directory)
    for parent in parents:
        fs.sync_directory(parent)

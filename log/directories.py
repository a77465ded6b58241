"""All data directories of a broker: which of them are served, and which one holds a partition.

One of them is the directory of the metadata log, and without it there is no broker: whatever is
wrong with it ends the start. Any other one may be missing, unreadable or fail later. It is offline
then until the next start, its partitions with it, and the rest is served. What is never taken for a
passing fault is a directory of another node or cluster, or one that another broker uses.

Where a partition is, the metadata says (`assigned`, a directory id), and the disks confirm it:

| assigned directory | what is found            | what is done                                     |
|--------------------|--------------------------|--------------------------------------------------|
| offline or unknown | anything                 | offline: another copy may be older               |
| online             | there                    | opened; another one elsewhere is set aside, as a |
|                    |                          | move had not put it away yet                     |
| online             | in one other directory   | opened there: a move had not ended, or somebody  |
|                    |                          | has moved it by hand                             |
| online             | in several others        | refused: nobody knows which one is right         |
| online             | only an unfinished copy  | offline: what it was copied from is gone         |
| online             | nowhere                  | made there                                       |
| none yet           | nowhere                  | made where the fewest partitions are; offline if |
|                    |                          | a directory is, because it may be there          |
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

from klamm.log.checkpoint import encode_uuid
from klamm.log.checkpoint_files import CHECKPOINT_FILES
from klamm.log.clean_shutdown import NO_BROKER_EPOCH
from klamm.log.config import LogConfig
from klamm.log.environment import LogEnvironment
from klamm.log.errors import (
    CorruptFileError,
    DirectoryOfflineError,
    DuplicatePartitionError,
    InconsistentDirectoryError,
)
from klamm.log.fs import DISK_FULL, NO_DESCRIPTORS, FileSystem
from klamm.log.layout import TopicPartition
from klamm.log.manager import LogManager
from klamm.log.meta_properties import MetaProperties, read_meta_properties
from klamm.log.partition_log import PartitionLog
from klamm.log.producer_state import PRODUCER_ID_EXPIRATION_MS
from klamm.log.work import Work

logger = logging.getLogger(__name__)

# Errors that say nothing of the disk itself.
PASSING = DISK_FULL | NO_DESCRIPTORS

# Kafka's ids that name no directory.
UNASSIGNED, LOST, MIGRATING = (UUID(int=number) for number in range(3))
RESERVED_IDS = frozenset({UNASSIGNED, LOST, MIGRATING})


class LogDirectories:
    """The data directories of one broker; made by `open`.

    Attributes:
        metadata: the directory of the metadata log.
        roots: the paths of all directories that hold partitions, in the order of the settings.
        on_failed: called when a directory goes offline, in the thread that has noticed it.
    """

    def __init__(
        self,
        roots: Sequence[str],
        metadata: LogManager,
        opened: Sequence[LogManager],
    ) -> None:
        self.roots = tuple(roots)
        self.metadata = metadata
        self.environment = metadata.environment
        self.on_failed: Callable[[LogManager], None] = lambda directory: None
        self._opened = list(opened)
        for directory in self._opened:
            if directory is not metadata:
                directory.on_failed = self._fail

    @classmethod
    def open(
        cls,
        fs: FileSystem,
        roots: Sequence[str],
        *,
        metadata_root: str | None = None,
        node_id: int,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        admit: Callable[[MetaProperties], None] = lambda _: None,
    ) -> "LogDirectories":
        """Keep others out of all directories, and find out how they were left.

        Only new ones are written to before `begin`. In a new cluster all of them are made. Later
        one that does not exist is offline, because a disk may not be mounted; an empty one is taken
        for new.

        Args:
            roots: the directories of partitions.
            metadata_root: that of the metadata log; the first one when it is not given.
            admit: asked about that one, as in LogManager.claim.

        Raises:
            DirectoryLockedError: another process uses one of them.
            InconsistentDirectoryError: they are not of one node and one cluster, or none of those
                for partitions can be used.
            CorruptFileError: what a directory says of itself can't be understood.
            CorruptFileError, OSError: the directory of the metadata log can't be used.
        """
        metadata_root = metadata_root or roots[0]
        every_root = list(dict.fromkeys([metadata_root, *roots]))
        unusable: dict[str, CorruptFileError | OSError] = {}
        known = _read_all_properties(fs, every_root, metadata_root, unusable)
        _check_one_cluster(known, metadata_root)
        is_new_cluster = metadata_root not in known
        opened: list[LogManager] = []
        environment = LogEnvironment(fs)
        try:
            for root in every_root:
                if root in unusable:
                    continue
                try:
                    if not is_new_cluster and not fs.exists(root):
                        raise FileNotFoundError(f"{root} does not exist")
                    opened.append(
                        LogManager.claim(
                            fs,
                            root,
                            node_id=node_id,
                            cluster_id=opened[0].cluster_id if opened else None,
                            producer_id_expiration_ms=producer_id_expiration_ms,
                            environment=environment,
                            # What the others hold, the metadata log says.
                            admit=admit if root == metadata_root else lambda _: None,
                        )
                    )
                except (CorruptFileError, OSError) as error:
                    if root == metadata_root:
                        raise
                    unusable[root] = error
            if not any(directory.root in roots for directory in opened):
                raise _none_usable(unusable)
        except BaseException:
            for directory in opened:
                directory.abandon()
            raise
        for root, reason in unusable.items():
            logger.error("%s is offline: %s", root, reason)
        return cls(roots, opened[0], opened)

    def begin(self) -> None:
        """Write to the directories from now on, as LogManager.begin; one that refuses goes offline.

        Raises:
            OSError: the directory of the metadata log refuses.
            InconsistentDirectoryError: all those for partitions do.
        """
        for directory in self._opened:
            try:
                directory.begin()
            except OSError as error:
                if directory.on_failed is None:
                    raise
                directory.fail(error)
        if not self.online:
            reasons = {one.root: one.failure for one in self._opened if one.failure is not None}
            raise _none_usable(reasons)

    def __iter__(self) -> Iterator[PartitionLog]:
        for directory in self._opened:
            yield from directory

    # --- directories ---

    @property
    def online(self) -> list[LogManager]:
        """The directories that hold partitions and are served."""
        return [
            directory
            for directory in self._opened
            if directory.failure is None and directory.root in self.roots
        ]

    @property
    def has_offline(self) -> bool:
        return len(self.online) < len(self.roots)

    @property
    def cluster_id(self) -> str:
        return self.metadata.cluster_id

    @property
    def producer_id_expiration_ms(self) -> int:
        """Of the logs that are opened from now on."""
        return self.metadata.producer_id_expiration_ms

    @producer_id_expiration_ms.setter
    def producer_id_expiration_ms(self, value: int) -> None:
        for directory in self._opened:
            directory.producer_id_expiration_ms = value

    def find(self, directory_id: UUID) -> LogManager | None:
        """The directory with that id, if it is online."""
        return next((one for one in self.online if one.directory_id == directory_id), None)

    def holder_of(self, log: PartitionLog) -> LogManager:
        """The directory that a log is in."""
        return next(one for one in self._opened if one.get(log.topic, log.partition) is log)

    def can_spare(self, log: PartitionLog) -> bool:
        """Whether the directory of a log may go offline."""
        return log.root != self.metadata.root

    def _fail(self, directory: LogManager, error: OSError) -> None:
        logger.error("%s is offline: %s", directory.root, error)
        self.on_failed(directory)

    def blame(self, error: OSError) -> bool:
        """Take the directory offline that an error names; False when it names none that may go."""
        if error.errno in PASSING:
            return False
        path = str(error.filename)
        for directory in self._opened:
            if directory.on_failed is not None and path.startswith(f"{directory.root}/"):
                directory.fail(error)
                return True
        return False

    # --- partitions ---

    def opening(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        now_ms: int,
        assigned: UUID,
    ) -> Work[PartitionLog]:
        """Open a partition's log where it is, or make it; see the table above.

        Raises:
            DirectoryOfflineError: what holds it is offline.
            DuplicatePartitionError: it is in several directories, and none is the right one.
            CorruptLogError, CorruptFileError, OSError: as LogManager.opening.
        """
        directory = self._choose(topic, partition, assigned)
        try:
            return (yield from directory.opening(topic, partition, topic_id, config, now_ms))
        except OSError as error:
            if directory.on_failed is not None and error.errno not in PASSING:
                directory.fail(error)
            raise

    def _choose(self, topic: str, partition: int, assigned: UUID) -> LogManager:
        home = self.find(assigned)
        if home is None and assigned not in RESERVED_IDS:
            if self.has_offline:
                raise DirectoryOfflineError(f"the log directory of {topic}-{partition} is offline")
            raise DirectoryOfflineError(
                f"none of log.dirs has the directory id {encode_uuid(assigned)} of"
                f" {topic}-{partition}"
            )
        holders = [one for one in self.online if one.has(topic, partition)]
        if home in holders:
            for other in holders:
                if other is not home:
                    other.set_aside(topic, partition, f"it is in {home.root}, too")
            return home
        if len(holders) > 1:
            found = " and ".join(one.root for one in holders)
            raise DuplicatePartitionError(
                f"{topic}-{partition} is in {found}; remove the one that is not right"
            )
        if holders:
            return holders[0]
        if home is None and self.has_offline:
            raise DirectoryOfflineError(
                f"{topic}-{partition} may be in a directory that is offline"
            )
        if any((topic, partition) in one.unfinished for one in self.online):
            raise DirectoryOfflineError(f"of {topic}-{partition} there is only an unfinished copy")
        return min(self.online, key=len) if home is None else home

    def set_aside_strays(self, known: set[TopicPartition]) -> None:
        """Rename the directories of partitions that no topic owns."""
        for directory in self.online:
            directory.set_aside_strays(known)

    def note_boot(self) -> None:
        """As LogManager.note_boot, when all partitions were opened."""
        for directory in self._served():
            directory.note_boot()

    def forget_boot(self) -> None:
        """As LogManager.forget_boot, whichever directory it was."""
        for directory in self._served():
            directory.forget_boot()

    def delete_partition(self, topic: str, partition: int) -> None:
        """Forget a partition and put its directory away, wherever it is."""
        for directory in self.online:
            directory.delete_partition(topic, partition)

    def remove_deleted(self) -> None:
        """Remove the directories that delete_partition put away. May run in any thread.

        Raises:
            OSError: some can't be removed.
        """
        self._for_each(self.online, LogManager.remove_deleted)

    # --- checkpoints and the end ---

    def checkpoint_writer(self, names: Sequence[str] = CHECKPOINT_FILES) -> Callable[[], None]:
        """As LogManager.checkpoint_writer; a directory that refuses goes offline, if it may.

        The callable raises OSError where a disk is full or descriptors are short, after all others
        were written, or where the directory of the metadata log refuses.
        """
        writers = {one: one.checkpoint_writer(names) for one in self._served()}

        def write() -> None:
            passing: OSError | None = None
            for directory, writer in writers.items():
                try:
                    writer()
                except OSError as error:
                    if error.errno in PASSING:
                        passing = error
                    elif directory.on_failed is None:
                        raise
                    else:
                        directory.fail(error)
            if passing is not None:
                raise passing

        return write

    def close(self, threads: int = 1, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Shut down cleanly; a directory that is offline is left as it is.

        Args:
            threads, broker_epoch: as LogManager.close.

        Raises:
            OSError: a directory could not be closed; the others were.
        """
        served = self._served()
        for directory in self._opened:
            if directory not in served:
                directory.abandon()
        self._for_each(served, lambda directory: directory.close(threads, broker_epoch))

    def abandon(self) -> None:
        """Let go of all files and of the locks, and write nothing."""
        for directory in self._opened:
            directory.abandon()

    def _served(self) -> list[LogManager]:
        return [directory for directory in self._opened if directory.failure is None]

    @staticmethod
    def _for_each(directories: Sequence[LogManager], act: Callable[[LogManager], None]) -> None:
        """Act on all, whatever one of them says; then raise what the first had to say."""
        errors: list[OSError] = []
        for directory in directories:
            try:
                act(directory)
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]


def _none_usable(reasons: Mapping[str, Exception]) -> InconsistentDirectoryError:
    listed = "; ".join(f"{root}: {reason}" for root, reason in reasons.items())
    return InconsistentDirectoryError(f"none of log.dirs can be used: {listed}")


def _read_all_properties(
    fs: FileSystem,
    roots: Sequence[str],
    metadata_root: str,
    unusable: dict[str, CorruptFileError | OSError],
) -> dict[str, MetaProperties]:
    """Read whose the directories are, before anything in any of them is touched."""
    known: dict[str, MetaProperties] = {}
    for root in roots:
        try:
            properties = read_meta_properties(fs, root)
            if properties is not None:
                known[root] = properties
        except OSError as error:
            if root == metadata_root:
                raise
            unusable[root] = error
    return known


def _check_one_cluster(known: dict[str, MetaProperties], metadata_root: str) -> None:
    if not known:
        return
    first_root = metadata_root if metadata_root in known else next(iter(known))
    first = known[first_root]
    if first_root != metadata_root:
        raise InconsistentDirectoryError(
            f"{metadata_root} is new, and {first_root} belongs to cluster {first.cluster_id};"
            " name the directory that has the metadata log as metadata.log.dir"
        )
    owners: dict[UUID, str] = {}
    for root, properties in known.items():
        if properties.cluster_id != first.cluster_id:
            raise InconsistentDirectoryError(
                f"{root} belongs to cluster {properties.cluster_id}, and {first_root} to cluster"
                f" {first.cluster_id}; choose other directories"
            )
        if properties.directory_id in owners:
            raise InconsistentDirectoryError(
                f"{root} is a copy of {owners[properties.directory_id]}: both have the same"
                " directory.id; remove the copy"
            )
        owners[properties.directory_id] = root

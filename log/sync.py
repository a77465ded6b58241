"""One group commit: what has to reach the disk before everything up to an offset is durable."""

from klamm.log.checkpoint import replace_file
from klamm.log.fs import DISK_FULL, File, FileSystem, OsFile


class SyncRequest:
    """The syncs that make a log durable up to end_offset.

    `run` blocks, touches no state of the log and may be called from another thread; the log learns
    of it by `PartitionLog.mark_synced`. One log has at most one request under way. A request is
    never run again after it failed: the kernel may have dropped the dirty pages and would call the
    second attempt a success.

    A full disk is no failure: the checkpoint of the leader epochs is then left for a later request,
    and `is_partial` says so. Everything else is synced, and the old checkpoint is still there.

    Args:
        directory: the partition's directory.
        end_offset: everything below it is durable afterwards.
        unsynced: what has changed besides the active segment.
        file: the active segment when it has unsynced bytes. The reference keeps it open.
        replacement: (name, content) of a checkpoint file in `directory` to be replaced.

    Attributes:
        generation: of the log; a truncation in between makes the request void.
        changes: how many names and epochs had changed in the log when the request was made.
        paths: rolled segments, indexes and snapshots written since the last sync.
        directories: those in which names were made, renamed or removed.
    """

    __slots__ = (
        "_fs",
        "_unsynced",
        "changes",
        "directories",
        "directory",
        "end_offset",
        "file",
        "generation",
        "is_partial",
        "paths",
        "replacement",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        end_offset: int,
        unsynced: "Unsynced",
        file: File | None,
        replacement: tuple[str, bytes] | None,
    ) -> None:
        self._fs = fs
        self._unsynced = unsynced
        self.directory = directory
        self.end_offset = end_offset
        self.generation = unsynced.generation
        self.changes = unsynced.changes
        self.file = file
        self.paths = tuple(unsynced.paths)
        self.directories = unsynced.directories(directory)
        self.replacement = replacement
        self.is_partial = False

    @property
    def is_empty(self) -> bool:
        """Whether everything is durable already."""
        return self.file is None and not self.paths and not self.directories

    @property
    def lone_file(self) -> OsFile | None:
        """The file that is all there is to sync, as it mostly is, and that has nothing of its own
        to do then: whoever syncs it in another way has run the request."""
        if self.paths or self.directories or self.replacement is not None:
            return None
        return self.file if type(self.file) is OsFile else None

    def run(self) -> None:
        """Sync all of it.

        Raises:
            OSError: the disk failed; the process must halt without trying again.
        """
        try:
            self._run()
        except FileNotFoundError:
            # The whole partition was deleted meanwhile; nothing of it needs to be durable.
            if not self._unsynced.is_deleted:
                raise

    def _run(self) -> None:
        if self._unsynced.is_deleted:
            # Another partition may have the directory's name by now.
            return
        if self.replacement is not None:
            self._replace(*self.replacement)
        for path in self.paths:
            try:
                file = self._fs.open(path)
            except FileNotFoundError:
                # The segment was deleted meanwhile, by retention or truncation.
                continue
            file.datasync()
        if self.file is not None:
            self.file.datasync()
        for directory in self.directories:
            self._fs.sync_directory(directory)

    def _replace(self, name: str, content: bytes) -> None:
        try:
            replace_file(self._fs, self.directory, name, content, sync_directory=False)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            self.is_partial = True


class Unsynced:
    """What a log has changed on disk since its last sync, besides the active segment's bytes.

    `changes` counts what was written, renamed or removed, `generation` truncations: with them a log
    knows whether a request that has run still describes it.
    """

    __slots__ = ("changes", "epochs", "generation", "is_deleted", "names", "parent_names", "paths")

    def __init__(self) -> None:
        # Files whose bytes are not synced (rolled segments, indexes, snapshots), each with the
        # change that wrote it last: a roll that a full disk refuses is tried again and again.
        self.paths: dict[str, int] = {}
        # Whether names in the partition's directory, its name in the parent directory, or the
        # leader epochs are not on disk yet.
        self.names = False
        self.parent_names = False
        self.epochs = False
        self.changes = 0
        self.generation = 0
        # The directory has been renamed away; requests under way have nothing to do any more.
        self.is_deleted = False

    def add_paths(self, paths: list[str]) -> None:
        """Note files that were written, and whose names may be new."""
        self.names = True
        self.changes += 1
        self.paths.update(dict.fromkeys(paths, self.changes))

    def add_names(self) -> None:
        """Note that names in the partition's directory were changed or removed."""
        self.names = True
        self.changes += 1

    def add_epoch(self) -> None:
        self.epochs = True
        self.changes += 1

    def add_directory(self) -> None:
        """Note that the partition's directory may be new, and names in it."""
        self.names = True
        self.parent_names = True
        self.changes += 1

    def on_truncated(self) -> None:
        """Make requests under way void: what they sync may not be what is there now."""
        self.generation += 1

    def directories(self, directory: str) -> tuple[str, ...]:
        """Return the directories that have to be synced."""
        own = (directory,) if self.names or self.epochs else ()
        return (*own, directory.rpartition("/")[0]) if self.parent_names else own

    def mark_synced(self, request: SyncRequest) -> bool:
        """Forget what a request has synced; False when the request is void."""
        if request.generation != self.generation:
            return False
        self.paths = {
            path: change for path, change in self.paths.items() if change > request.changes
        }
        if request.changes == self.changes and not request.is_partial:
            self.names = False
            self.parent_names = False
            self.epochs = False
        return True

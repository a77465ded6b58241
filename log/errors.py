"""What the log may raise, and nothing else besides OSError from the disk itself.

A refusal (LogError) leaves the log exactly as it was and carries the code that the client gets.
The other types are faults of the data directory: the partition, or the whole directory, is not
opened, because guessing would lose data that was promised (reliability: never silently).
"""

from collections.abc import Sequence

from klamm.wire.errors import ErrorCode


class LogError(Exception):
    """A request that the log refuses; `code` is what the response carries.

    Args:
        code: the error code of the response.
        message: one sentence for the response and for the server's own log.
        record_errors: (index of the record in its batch, message) for each refused record;
            Produce carries them from version 8 (KIP-467).
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str = "",
        record_errors: Sequence[tuple[int, str]] = (),
    ) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message
        self.record_errors = tuple(record_errors)


class StorageError(Exception):
    """Something on disk is not as it must be, and going on would risk data."""


class CorruptLogError(StorageError):
    """Synced data is damaged, and nothing is cut.

    A log that is being opened stays closed; one that is being read is served but for this place.

    Args:
        file: path of the damaged segment.
        offset: the log offset that was expected at the damaged place.
        position: the byte in the file where the damaged batch begins.
        reason: what is wrong there.
    """

    def __init__(self, file: str, offset: int, position: int, reason: str) -> None:
        super().__init__(
            f"{file}: damaged batch at byte {position} (offset {offset}): {reason};"
            " nothing is cut, because valid or synced data would be lost"
        )
        self.file = file
        self.offset = offset
        self.position = position
        self.reason = reason


class CorruptFileError(StorageError):
    """A checkpoint, snapshot or metadata file is unreadable; it is never treated as empty."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


class DirectoryLockedError(StorageError):
    """Another process holds the data directory."""


class InconsistentDirectoryError(StorageError):
    """The data directory belongs to another node or cluster, or is of a newer format."""


class DirectoryOfflineError(StorageError):
    """What is asked for is in a data directory that is not served."""


class DuplicatePartitionError(StorageError):
    """A partition is in several data directories, and nothing says which one is right."""

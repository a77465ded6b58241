"""Which partitions a data directory holds, before anybody has decided to use it."""

from collections.abc import Iterator

from klamm.log.fs import FileSystem
from klamm.log.layout import (
    PARTITION_METADATA,
    TopicPartition,
    parse_metadata_snapshot,
    parse_partition_directory,
    parse_segment_file,
)


def stored_partitions(fs: FileSystem, root: str) -> Iterator[TopicPartition]:
    """Yield the partitions in a data directory, with the metadata log, that have any file.

    By its name alone a directory may be anything: somebody may keep his `backup-2024` there.

    Raises:
        OSError: the directory can't be read.
    """
    for name in fs.list_directories(root):
        key = parse_partition_directory(name)
        if key is not None and holds_log(fs, f"{root}/{name}"):
            yield key


def holds_log(fs: FileSystem, directory: str) -> bool:
    """Whether a directory is there and has any file of a log. Raises OSError."""
    return fs.exists(directory) and any(map(_is_of_a_log, fs.list_files(directory)))


def _is_of_a_log(name: str) -> bool:
    return (
        name == PARTITION_METADATA
        or parse_segment_file(name) is not None
        or parse_metadata_snapshot(name) is not None
    )

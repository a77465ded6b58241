"""The names of files and directories, as Kafka lays out a log directory.

    <root>/meta.properties, .lock, .kafka_cleanshutdown, .klamm-boot, *-checkpoint
    <root>/<topic>-<partition>/                 one partition
    <root>/<topic>-<partition>.<id>-delete/     a partition that is being removed
    <root>/<topic>-<partition>.<id>-stray/      a partition that no topic owns
    <root>/<topic>-<partition>.<id>-future/     a copy of a partition that moves to this directory
        %020d.log .index .timeindex .txnindex   one segment, named by its base offset
        %020d.snapshot                          producer state at that offset
        leader-epoch-checkpoint, partition.metadata

A segment file may carry one more suffix while compaction or deletion is under way: `.cleaned`,
`.swap`, `.deleted`. One that ends in `.stray` was set aside by recovery, and no log uses it.
"""

import re

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
SEGMENT_SUFFIXES = (LOG_SUFFIX, *INDEX_SUFFIXES)

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
STRAY_SUFFIX = ".stray"
TEMPORARY_SUFFIX = ".tmp"

DELETE_DIRECTORY_SUFFIX = "-delete"
FUTURE_DIRECTORY_SUFFIX = "-future"
STRAY_DIRECTORY_SUFFIX = "-stray"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
# What Kafka's storage tool lets a new cluster's metadata begin with.
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
# In the directory of the metadata log: the last election that its node knows of.
QUORUM_STATE = "quorum-state"
LOCK_FILE = ".lock"
# Room that is kept back for the metadata log; klamm's own.
RESERVE_FILE = ".klamm-reserve"
# The boot of the operating system in which the directory was last written to; klamm's own, too.
BOOT_FILE = ".klamm-boot"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

DIRECTORY_NAME_MAX = 255

TopicPartition = tuple[str, int]

_SEGMENT_FILE = re.compile(
    r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex)(\.deleted|\.cleaned|\.swap)?"
)
_SNAPSHOT_FILE = re.compile(r"([0-9]{20})\.snapshot(\.deleted)?")
_METADATA_SNAPSHOT_FILE = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_FUTURE_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)\.[0-9a-f]{32}-future")
_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]+)")


def segment_file(base_offset: int, suffix: str) -> str:
    """Return the name of one file of the segment that begins at base_offset."""
    return f"{base_offset:020d}{suffix}"


def parse_segment_file(name: str) -> tuple[int, str, str] | None:
    """Return (base offset, kind suffix, transient suffix or "") of a segment file's name."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    return int(match[1]), match[2], match[3] or ""


def parse_snapshot_file(name: str) -> tuple[int, str] | None:
    """Return (offset, transient suffix or "") of a producer snapshot's name.

    A metadata snapshot of Kafka (`<offset>-<epoch>.checkpoint`) is not one.
    """
    match = _SNAPSHOT_FILE.fullmatch(name)
    if match is None:
        return None
    return int(match[1]), match[2] or ""


def parse_metadata_snapshot(name: str) -> tuple[int, int] | None:
    """Return (offset that it ends at, epoch) of a metadata snapshot's name (KIP-630)."""
    match = _METADATA_SNAPSHOT_FILE.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def partition_directory(topic: str, partition: int) -> str:
    """Return the name of a partition's directory."""
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> TopicPartition | None:
    """Return (topic, partition) of a directory's name; None for every other directory."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None:
        return None
    return match[1], int(match[2])


def parse_future_directory(name: str) -> TopicPartition | None:
    """Return (topic, partition) of a copy that was not finished; None for other directories."""
    match = _FUTURE_DIRECTORY.fullmatch(name)
    if match is None:
        return None
    return match[1], int(match[2])


def renamed_directory(topic: str, partition: int, unique: str, suffix: str) -> str:
    """Return the name under which a partition waits to be removed, or to be looked at.

    Args:
        unique: a random id without dashes, so that a topic made and deleted again does not collide.
        suffix: DELETE_DIRECTORY_SUFFIX, STRAY_DIRECTORY_SUFFIX or FUTURE_DIRECTORY_SUFFIX.
    """
    full_suffix = f"-{partition}.{unique}{suffix}"
    return topic[: DIRECTORY_NAME_MAX - len(full_suffix)] + full_suffix

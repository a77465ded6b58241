"""The files of the data directory itself: whose it is, how it was left, and its checkpoints."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from klamm.log.check.findings import Findings
from klamm.log.check.formats import Malformed
from klamm.log.check.metadata_snapshots import check_metadata_snapshot
from klamm.log.check.source import Reader
from klamm.log.check.text_files import (
    CheckpointEntry,
    MetaProperties,
    boot_file,
    meta_properties,
    offset_checkpoint,
)
from klamm.log.layout import (
    BOOT_FILE,
    BOOTSTRAP_CHECKPOINT,
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    RESERVE_FILE,
    TEMPORARY_SUFFIX,
    TopicPartition,
)
from klamm.wire.records.record import Record

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
_OTHERS = frozenset({LOCK_FILE, RESERVE_FILE})
_CLEAN_SHUTDOWN_VERSION = 0


@dataclass
class RootFiles:
    """What a data directory says of itself.

    Attributes:
        is_same_boot: whether the operating system has run on since the logs were last written.
        damaged: the directories of partitions in which damage was found in an earlier boot.
        properties: None where meta.properties is missing or damaged.
        checkpoints: the lines of each checkpoint by partition; None where it is damaged.
        has_reserve: whether klamm keeps room here, which it does beside its metadata log.
        emptied: the checkpoints that have no bytes.
        has_boot_file: whether klamm has written here.
    """

    root: str
    is_clean: bool = False
    is_same_boot: bool = False
    damaged: frozenset[str] = frozenset()
    properties: MetaProperties | None = None
    checkpoints: dict[str, dict[TopicPartition, CheckpointEntry] | None] = field(
        default_factory=dict
    )
    has_reserve: bool = False
    emptied: list[str] = field(default_factory=list)
    has_boot_file: bool = False

    def line(self, checkpoint: str, key: TopicPartition) -> CheckpointEntry | None:
        """Return what a checkpoint says of a partition."""
        return (self.checkpoints.get(checkpoint) or {}).get(key)

    def offset(self, checkpoint: str, key: TopicPartition) -> int | None:
        line = self.line(checkpoint, key)
        return None if line is None else line.offset

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"


def read_root_files(
    reader: Reader, findings: Findings, root: str, see: Callable[[Record], str | None] | None
) -> RootFiles:
    """Read and check the files that lie in the data directory itself.

    Args:
        see: says what is wrong with a metadata record; None where nobody understands them.
    """
    names = reader.files.list_files(root)
    found = RootFiles(
        root, is_clean=CLEAN_SHUTDOWN_FILE in names, has_reserve=RESERVE_FILE in names
    )
    if META_PROPERTIES not in names:
        findings.fault(found.path(META_PROPERTIES), "is missing")
    for name in names:
        path = found.path(name)
        try:
            if name == META_PROPERTIES:
                found.properties = meta_properties(reader.read_whole(path))
            elif name == CLEAN_SHUTDOWN_FILE:
                _check_clean_shutdown(reader.read_whole(path))
            elif name in CHECKPOINTS:
                found.checkpoints[name] = None
                data = reader.read_whole(path)
                if not data:
                    found.emptied.append(name)
                lines = offset_checkpoint(data)
                found.checkpoints[name] = {line[1:3]: line for line in lines}
            elif name == BOOT_FILE:
                found.has_boot_file = True
                boot_id, damaged = boot_file(reader.read_whole(path))
                found.is_same_boot = boot_id != "" and boot_id == reader.files.boot_id()
                found.damaged = frozenset(damaged)
            elif name == BOOTSTRAP_CHECKPOINT:
                # Kafka reads it at every start, klamm before the metadata log has begun.
                check_metadata_snapshot(reader, findings, path, see)
            elif name.endswith(TEMPORARY_SUFFIX):
                findings.note(path, "left over from a file that was being replaced")
            elif name not in _OTHERS:
                findings.note(path, "not a file of a data directory")
        except Malformed as bad:
            findings.fault(path, bad.reason, position=bad.position)
    return found


def _check_clean_shutdown(data: bytes) -> None:
    try:
        marker = json.loads(data)
    except ValueError as error:
        raise Malformed(0, f"not JSON: {error}") from None
    if not isinstance(marker, dict) or marker.get("version") != _CLEAN_SHUTDOWN_VERSION:
        raise Malformed(0, f"not version {_CLEAN_SHUTDOWN_VERSION}")
    if not isinstance(marker.get("brokerEpoch"), int):
        raise Malformed(0, "there is no brokerEpoch")

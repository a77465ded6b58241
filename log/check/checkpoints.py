"""The checkpoints of a data directory, compared with where the logs begin and end."""

from collections.abc import Sequence

from klamm.log.check.contents import Owner
from klamm.log.check.findings import Findings
from klamm.log.check.owners import METADATA_PARTITION
from klamm.log.check.partition import Found
from klamm.log.check.root_files import RootFiles
from klamm.log.layout import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    partition_directory,
)


def check_end(
    findings: Findings, root: RootFiles, key: TopicPartition, found: Found, owner: Owner | None
) -> None:
    """Compare what the checkpoints say of a partition with its log."""
    end = found.end_offset
    if end is None:
        return
    name = partition_directory(*key)
    _check_recovery_point(findings, root, key, found, end)
    for checkpoint in (HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, CLEANER_OFFSET_CHECKPOINT):
        line = root.line(checkpoint, key)
        # Of an unclean stop the log may have lost its end; a start takes the lower of the two.
        if line is None or not root.is_clean:
            continue
        is_committed = (
            checkpoint == HIGH_WATERMARK_CHECKPOINT and owner is not None and owner.is_alone
        )
        if line.offset > end or (is_committed and line.offset < end):
            what = f"{name} at {line.offset}, its log ends at {end}"
            findings.fault(root.path(checkpoint), what, offset=line.offset, position=line.at)


def _check_recovery_point(
    findings: Findings, root: RootFiles, key: TopicPartition, found: Found, end: int
) -> None:
    line = root.line(RECOVERY_POINT_CHECKPOINT, key)
    path = root.path(RECOVERY_POINT_CHECKPOINT)
    name = partition_directory(*key)
    if line is None:
        return
    if end < line.offset:
        last, size = found.last_segment or (root.path(name), None)
        what = f"the log ends here, but {path} has {line.offset}"
        findings.fault(last, what, offset=end, position=size)
    elif root.is_clean and end != line.offset:
        what = f"{name} at {line.offset}, its log ends at {end}"
        findings.fault(path, what, offset=line.offset, position=line.at)


def check_emptied(findings: Findings, root: RootFiles) -> None:
    """Name the checkpoints of no bytes in a directory whose partitions have data.

    Kafka makes them so, and has written these two at the latest when it stops.
    """
    if not root.is_clean and not root.has_boot_file:
        return
    for checkpoint in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT):
        if checkpoint in root.emptied:
            report = findings.fault if root.is_clean else findings.note
            report(root.path(checkpoint), "has no bytes, though there is data")


def check_lines(findings: Findings, roots: Sequence[RootFiles], there: set[TopicPartition]) -> None:
    """Each line has its partition, and after a clean stop each partition its lines.

    Args:
        there: the partitions that should have lines, and were found.
    """
    for root in roots:
        for checkpoint, lines in root.checkpoints.items():
            for key, line in (lines or {}).items():
                if key not in there:
                    findings.note(
                        root.path(checkpoint),
                        f"there is no partition {partition_directory(*key)}",
                        offset=line.offset,
                        position=line.at,
                    )
    if not all(root.is_clean for root in roots):
        return
    for checkpoint in (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT):
        known: set[TopicPartition] = set()
        for root in roots:
            lines = root.checkpoints.get(checkpoint, {})
            known |= there if lines is None else lines.keys()
        # The metadata log of Kafka has none.
        for key in sorted(there - known - {METADATA_PARTITION}):
            what = f"partition {partition_directory(*key)} is missing"
            findings.fault(roots[0].path(checkpoint), what)

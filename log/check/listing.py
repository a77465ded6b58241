"""The files of a partition's directory, sorted by what they are."""

from collections import Counter
from dataclasses import dataclass, field

from klamm.log.check.findings import Findings
from klamm.log.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    QUORUM_STATE,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_metadata_snapshot,
    parse_segment_file,
    parse_snapshot_file,
)


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The names of one segment's files; None where there is no such file.

    Only the output of a compaction whose renames are half done has indexes and no log.
    """

    base_offset: int
    log: str | None
    offset_index: str | None
    time_index: str | None
    txn_index: str | None


@dataclass
class Listing:
    """What lies in a directory.

    Attributes:
        segments: by their base offset.
        snapshots: (offset, name) of the producer snapshots, in the order of their offsets.
        metadata_snapshots: (offset, name) of snapshots of the metadata log.
        swaps: compacted segments whose place is still taken by what they replace.
        cleaned: the base offsets of compacted segments that are not finished.
    """

    segments: list[SegmentFiles] = field(default_factory=list)
    snapshots: list[tuple[int, str]] = field(default_factory=list)
    metadata_snapshots: list[tuple[int, str]] = field(default_factory=list)
    swaps: list[SegmentFiles] = field(default_factory=list)
    cleaned: list[int] = field(default_factory=list)
    has_epochs: bool = False
    has_partition_metadata: bool = False
    has_quorum_state: bool = False


def list_partition(names: list[str], directory: str, findings: Findings) -> Listing:
    """Sort the names of a directory's files; what does not belong there is noted."""
    listing = Listing()
    files: dict[str, dict[int, dict[str, str]]] = {}
    leftovers: Counter[str] = Counter()
    for name in names:
        segment = parse_segment_file(name)
        snapshot = parse_snapshot_file(name)
        metadata_snapshot = parse_metadata_snapshot(name)
        transient = ""
        if segment is not None:
            base_offset, kind, transient = segment
            files.setdefault(transient, {}).setdefault(base_offset, {})[kind] = name
        elif snapshot is not None:
            offset, transient = snapshot
            if not transient:
                listing.snapshots.append((offset, name))
        elif metadata_snapshot is not None:
            listing.metadata_snapshots.append((metadata_snapshot[0], name))
        elif name == LEADER_EPOCH_CHECKPOINT:
            listing.has_epochs = True
        elif name == PARTITION_METADATA:
            listing.has_partition_metadata = True
        elif name.endswith(TEMPORARY_SUFFIX):
            findings.note(f"{directory}/{name}", "left over from a file that was being replaced")
        elif name == QUORUM_STATE:
            listing.has_quorum_state = True
        else:
            findings.note(f"{directory}/{name}", "not a file of a partition")
        if transient:
            leftovers[transient] += 1
    for transient, count in leftovers.items():
        cause = "deletion" if transient == DELETED_SUFFIX else "compaction"
        what = f"{count} files {transient}, left over from a {cause}; the next start clears them"
        findings.note(directory, what)
    listing.snapshots.sort()
    listing.metadata_snapshots.sort()
    listing.segments = _segments(files.get("", {}), directory, findings)
    listing.swaps = _segments(files.get(SWAP_SUFFIX, {}), directory, None)
    listing.cleaned = sorted(files.get(CLEANED_SUFFIX, {}))
    return listing


def _segments(
    files: dict[int, dict[str, str]], directory: str, findings: Findings | None
) -> list[SegmentFiles]:
    found = []
    for base_offset, names in sorted(files.items()):
        if LOG_SUFFIX not in names and findings is not None:
            for name in names.values():
                findings.note(f"{directory}/{name}", "an index without its segment")
            continue
        found.append(
            SegmentFiles(
                base_offset,
                names.get(LOG_SUFFIX),
                names.get(OFFSET_INDEX_SUFFIX),
                names.get(TIME_INDEX_SUFFIX),
                names.get(TXN_INDEX_SUFFIX),
            )
        )
    return found

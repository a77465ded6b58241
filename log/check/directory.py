"""A whole data directory, or several of one broker: every file is read, nothing is changed.

The metadata log comes first: it says which partitions there are. Then each partition by itself,
and at last what the checkpoints and the metadata say of it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from klamm.log.check.checkpoints import check_emptied, check_end, check_lines
from klamm.log.check.contents import Contents, NoContents
from klamm.log.check.findings import Finding, Findings
from klamm.log.check.owners import METADATA_PARTITION, OwnerCheck
from klamm.log.check.partition import Expectation, Found, PartitionCheck
from klamm.log.check.root_files import RootFiles, read_root_files
from klamm.log.check.source import ReadableFiles, Reader
from klamm.log.layout import (
    DELETE_DIRECTORY_SUFFIX,
    FUTURE_DIRECTORY_SUFFIX,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_DIRECTORY_SUFFIX,
    TopicPartition,
    parse_partition_directory,
    partition_directory,
)
from klamm.wire.records.record import Record


class Summary(NamedTuple):
    """How much was read, and how much of it is wrong."""

    partitions: int
    files: int
    bytes: int
    faults: int
    notes: int


def check_directories(
    files: ReadableFiles,
    roots: Sequence[str],
    *,
    contents: Contents | None = None,
    on_finding: Callable[[Finding], None],
    on_progress: Callable[[int], None] = lambda _: None,
    producers_expire: bool = True,
) -> Summary:
    """Check the data directories of one broker.

    Args:
        contents: who understands the records of internal topics.
        on_finding: called for each finding as it is made.
        on_progress: called with the number of bytes read so far.
        producers_expire: whether producers may be missing in a snapshot because they were idle.

    Raises:
        OSError: a directory can't be listed.
    """
    reader = Reader(files, on_progress)
    findings = Findings(on_finding)
    check = _Check(reader, findings, contents or NoContents(), producers_expire)
    check.run(roots)
    findings.close()
    return Summary(
        check.partitions, reader.files_read, reader.bytes_read, findings.faults, findings.notes
    )


class _Check:
    def __init__(
        self, reader: Reader, findings: Findings, contents: Contents, producers_expire: bool
    ) -> None:
        self._reader = reader
        self._findings = findings
        self._contents = contents
        self._producers_expire = producers_expire
        self._there: set[TopicPartition] = set()
        # The directories with a partition that holds batches.
        self._with_data: set[str] = set()
        self.partitions = 0

    def run(self, paths: Sequence[str]) -> None:
        understands = self._contents.understands(METADATA_PARTITION[0])
        sees = self._see_bootstrap if understands else None
        roots = [read_root_files(self._reader, self._findings, path, sees) for path in paths]
        names = {root.root: self._reader.files.list_directories(root.root) for root in roots}
        metadata = partition_directory(*METADATA_PARTITION)
        unknown = OwnerCheck(self._findings, roots, None)
        faults_before = self._findings.faults
        for root in roots:
            if metadata not in names[root.root]:
                continue
            names[root.root].remove(metadata)
            if METADATA_PARTITION in self._there:
                self._findings.fault(root.path(metadata), "another directory has one, too")
            else:
                self._check_partition(unknown, root, metadata, METADATA_PARTITION)
        if understands and METADATA_PARTITION not in self._there:
            self._check_metadata_is_elsewhere(roots, names)
        # Half of the metadata would call the other half's partitions strays.
        is_whole = self._findings.faults == faults_before
        owners = OwnerCheck(self._findings, roots, self._contents.owners() if is_whole else None)
        for root in roots:
            owners.check_identity(root)
            for name in names[root.root]:
                self._check_directory(owners, root, name)
            if root.root in self._with_data:
                check_emptied(self._findings, root)
        owners.check_missing(self._there)
        check_lines(self._findings, roots, self._there)

    def _see_bootstrap(self, record: Record) -> str | None:
        # What a cluster began with; the metadata log says what has become of it.
        return self._contents.see(METADATA_PARTITION[0], record, applies=False)

    def _check_metadata_is_elsewhere(
        self, roots: Sequence[RootFiles], names: Mapping[str, Sequence[str]]
    ) -> None:
        """There is no metadata log: it is lost, or in a directory that was not named."""
        if not any(map(parse_partition_directory, chain.from_iterable(names.values()))):
            return
        for root in roots:
            line = root.line(RECOVERY_POINT_CHECKPOINT, METADATA_PARTITION)
            if root.has_reserve or line is not None:
                path = root.path(partition_directory(*METADATA_PARTITION))
                self._findings.fault(path, "is missing, and there are partitions")
                return
        what = "no metadata log; name the directory that has it, too, to check against it"
        self._findings.note(roots[0].root, what)

    def _check_directory(self, owners: OwnerCheck, root: RootFiles, name: str) -> None:
        path = root.path(name)
        key = parse_partition_directory(name)
        if name.endswith(DELETE_DIRECTORY_SUFFIX):
            self._findings.note(path, "a deleted partition; the next start removes it")
        elif name.endswith((STRAY_DIRECTORY_SUFFIX, FUTURE_DIRECTORY_SUFFIX)):
            what = "set aside" if name.endswith(STRAY_DIRECTORY_SUFFIX) else "being moved here"
            self._findings.note(path, f"a partition that was {what}; no topic uses it")
            self._read_partition(path, name, Expectation(is_clean=False))
        elif key is None:
            self._findings.note(path, "not a partition")
        else:
            self._check_partition(owners, root, name, key)

    def _check_partition(
        self, owners: OwnerCheck, root: RootFiles, name: str, key: TopicPartition
    ) -> None:
        owner = owners.owner(key)
        compacts = None if owner is None else owner.compacts
        expectation = Expectation(
            is_clean=root.is_clean,
            is_same_boot=root.is_same_boot or name in root.damaged,
            recovery_point=root.offset(RECOVERY_POINT_CHECKPOINT, key),
            log_start=root.offset(LOG_START_CHECKPOINT, key),
            compacts=False if key == METADATA_PARTITION else compacts,
            producers_expire=self._producers_expire,
        )
        found = self._read_partition(root.path(name), key[0], expectation)
        self._there.add(key)
        if found is None:
            return
        if found.has_data:
            self._with_data.add(root.root)
        if key == METADATA_PARTITION:
            owners.check_metadata_partition(root, name, found.topic_id)
        else:
            owners.check_partition(root, name, key, found.topic_id)
        check_end(self._findings, root, key, found, owner)

    def _read_partition(self, path: str, topic: str, expectation: Expectation) -> Found | None:
        self.partitions += 1
        try:
            return PartitionCheck(
                self._reader, self._findings, self._contents, path, topic, expectation
            ).run()
        except OSError as error:
            self._findings.fault(error.filename or path, error.strerror or str(error))
            return None

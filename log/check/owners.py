"""What the metadata log says about the partitions and directories, compared with what is there."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from klamm.log.check.contents import Owner
from klamm.log.check.findings import Findings
from klamm.log.check.root_files import RootFiles
from klamm.log.check.text_files import uuid_text
from klamm.log.layout import (
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    partition_directory,
)

METADATA_PARTITION = ("__cluster_metadata", 0)
METADATA_TOPIC_ID = UUID(int=1)
# Kafka keeps the first hundred ids for itself; they name no directory.
_RESERVED_IDS = 100


class OwnerCheck:
    """Compares with the partitions that there should be.

    Args:
        owners: None where that is not known, because there is no metadata log or it is damaged.
    """

    def __init__(
        self,
        findings: Findings,
        roots: Sequence[RootFiles],
        owners: Mapping[TopicPartition, Owner] | None,
    ) -> None:
        self._findings = findings
        self._roots = roots
        self._owners = owners
        # The directories that the metadata names.
        self._places = frozenset[UUID]().union(*map(_places, (owners or {}).values()))

    def owner(self, key: TopicPartition) -> Owner | None:
        return (self._owners or {}).get(key)

    def _surprise(self, root: RootFiles, path: str, what: str, consequence: str) -> None:
        """Name what a crash may leave: after a clean stop it is a fault."""
        if root.is_clean:
            self._findings.fault(path, what)
        else:
            self._findings.note(path, f"{what}; {consequence}")

    def check_partition(
        self, root: RootFiles, name: str, key: TopicPartition, topic_id: UUID | None
    ) -> None:
        """Compare a partition that is there; its topic id is None where it could not be read."""
        if self._owners is None:
            return
        owner = self._owners.get(key)
        if owner is None:
            what = "the metadata log has no such partition"
            self._surprise(root, root.path(name), what, "the next start sets it aside")
            return
        self._check_place(root, name, owner)
        if topic_id is not None and topic_id != owner.topic_id:
            what = f"topic id {uuid_text(topic_id)}, the metadata log has"
            self._surprise(
                root,
                root.path(f"{name}/{PARTITION_METADATA}"),
                f"{what} {uuid_text(owner.topic_id)}",
                "the next start sets it aside",
            )

    def check_metadata_partition(self, root: RootFiles, name: str, topic_id: UUID | None) -> None:
        """The metadata log has an id that never changes."""
        if topic_id not in (None, METADATA_TOPIC_ID):
            path = root.path(f"{name}/{PARTITION_METADATA}")
            self._findings.fault(path, f"not the topic id {uuid_text(METADATA_TOPIC_ID)}")

    def _check_place(self, root: RootFiles, name: str, owner: Owner) -> None:
        if root.properties is None or not self._is_known(root):
            return
        places = _places(owner)
        if places and root.properties.directory_id not in places:
            self._findings.fault(root.path(name), "the metadata log has it in another directory")

    def _is_known(self, root: RootFiles) -> bool:
        """Say whether the metadata names this directory at all; otherwise it is that which errs."""
        assert root.properties is not None
        return not self._places or root.properties.directory_id in self._places

    def check_identity(self, root: RootFiles) -> None:
        """Compare meta.properties with the metadata, and with the other directories."""
        mine = root.properties
        if mine is None:
            return
        path = root.path(META_PROPERTIES)
        first = next((other.properties for other in self._roots if other.properties), mine)
        if mine[:2] != first[:2]:
            what = f"cluster {mine.cluster_id}, node {mine.node_id}, another directory has"
            self._findings.fault(path, f"{what} cluster {first.cluster_id}, node {first.node_id}")
        nodes = [owner.replicas for owner in (self._owners or {}).values()]
        if nodes and not any(mine.node_id in replicas for replicas in nodes):
            self._findings.fault(path, f"the metadata log has no partition on node {mine.node_id}")
        if not self._is_known(root) and len(self._roots) == 1:
            what = f"the metadata log has no directory {uuid_text(mine.directory_id)}"
            self._findings.fault(path, what)

    def check_missing(self, there: set[TopicPartition]) -> None:
        """Look for partitions that should be in one of the directories."""
        here = {root.properties.directory_id for root in self._roots if root.properties}
        nodes = {root.properties.node_id for root in self._roots if root.properties}
        for key, owner in (self._owners or {}).items():
            places = _places(owner)
            is_here = nodes & set(owner.replicas) and (not places or places & here)
            if key not in there and is_here:
                self._missing(key)

    def _missing(self, key: TopicPartition) -> None:
        what = "is missing, the metadata log has it"
        name = partition_directory(*key)
        for root in self._roots:
            synced_to = root.offset(RECOVERY_POINT_CHECKPOINT, key) or 0
            if synced_to > 0:
                # No crash takes what was synced.
                path = root.path(RECOVERY_POINT_CHECKPOINT)
                self._findings.fault(root.path(name), f"{what}, and {path} has {synced_to}")
                return
        root = self._roots[0]
        self._surprise(root, root.path(name), what, "the next start makes it")


def _places(owner: Owner) -> frozenset[UUID]:
    """The directories that hold the partition, where the metadata names them."""
    return frozenset(place for place in owner.directory_ids if place.int >= _RESERVED_IDS)

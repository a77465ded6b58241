"""Whether klamm may go on with the metadata that it finds: its own, or that of an Apache Kafka.

What klamm has no use for stays in the log, where Kafka finds it again. What it can't do without
doing harm is a reason to refuse the directory, before anything in it is touched.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from klamm.broker.features import SUPPORTED_FEATURES
from klamm.broker.metadata.image import MetadataImage
from klamm.broker.metadata.store import MetadataStore
from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.log.errors import InconsistentDirectoryError
from klamm.log.fs import FileSystem
from klamm.log.layout import partition_directory
from klamm.log.stored_partitions import holds_log, stored_partitions

logger = logging.getLogger(__name__)


def admit(store: MetadataStore, root: str, node_id: int) -> None:
    """Check that klamm may go on with what was read.

    Args:
        root: the directory that it was read from.

    Raises:
        InconsistentDirectoryError: it must not.
    """
    image = store.image
    if store.is_new:
        # What the cluster will begin with.
        image = MetadataImage()
        for record in store.bootstrap:
            image.replay(record)
    others = sorted((store.quorum.voters | image.brokers.keys()) - {node_id})
    if others:
        raise refused(
            root, f"its cluster has other nodes ({_listed(others)}), and klamm is alone in its own"
        )
    reason = _refusal(image, node_id)
    if reason is not None:
        raise refused(root, reason)
    if image.client_quotas:
        logger.warning("%d client quotas are kept, but not enforced", len(image.client_quotas))


def check_place(fs: FileSystem, store: MetadataStore, root: str, others: Sequence[str]) -> None:
    """Check that the metadata was looked for where it is.

    Without metadata the cluster is taken for new, and every partition for one that no topic owns.

    Args:
        root: the directory that it was looked for in.
        others: the other directories; one that can't be read is none of these cases.

    Raises:
        InconsistentDirectoryError: it is elsewhere, or nowhere although there are partitions.
        CorruptLogError: it can't be read from its beginning on.
    """
    for other in others:
        if not _has_metadata_log(fs, other):
            continue
        if store.is_new:
            raise InconsistentDirectoryError(
                f"the metadata log is in {other}, and was looked for in {root};"
                f" set metadata.log.dir={other}, or name {other} first in log.dirs"
            )
        raise InconsistentDirectoryError(
            f"{root} and {other} both have a metadata log; move the one away that is not right"
        )
    if not store.is_new:
        return
    holder = next((one for one in (root, *others) if _has_partitions(fs, one)), None)
    if holder is None:
        return
    if store.damage is not None:
        raise store.damage
    raise InconsistentDirectoryError(
        f"{root} has no metadata log, but {holder} has partitions;"
        " name the directory with the metadata log as metadata.log.dir, or bring the log back"
    )


def _has_metadata_log(fs: FileSystem, root: str) -> bool:
    with suppress(OSError):
        return holds_log(fs, f"{root}/{partition_directory(METADATA_TOPIC, 0)}")
    return False


def _has_partitions(fs: FileSystem, root: str) -> bool:
    with suppress(OSError):
        return any(topic != METADATA_TOPIC for topic, _ in stored_partitions(fs, root))
    return False


def refused(root: str, reason: str) -> InconsistentDirectoryError:
    """Return the one line that the user gets."""
    return InconsistentDirectoryError(
        f"{root} is left as it is: {reason}; choose another --data-dir"
    )


def _refusal(image: MetadataImage, node_id: int) -> str | None:
    for name, level in image.features.items():
        first, last = SUPPORTED_FEATURES.get(name, (0, level))
        if level and not first <= level <= last:
            return f"its {name} is {level}, and klamm knows {first} to {last}"
    guards: dict[str, Collection[object]] = {
        "access control entries": image.acls,
        "SCRAM credentials": image.scram_credentials,
        "delegation tokens": image.delegation_tokens,
    }
    for what, found in guards.items():
        if found:
            return f"it is guarded by {len(found)} {what}, and klamm would serve it to everybody"
    return next(_misplaced(image, node_id), None)


def _misplaced(image: MetadataImage, node_id: int) -> Iterator[str]:
    for topic in image.topics.values():
        for state in topic.partitions:
            if state.replicas != [node_id]:
                yield f"{topic.name}-{state.index} is on the nodes {_listed(state.replicas)}"


def _listed(nodes: Collection[int]) -> str:
    return ", ".join(map(str, nodes))

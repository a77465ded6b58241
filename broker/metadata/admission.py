"""Whether klamm may go on with the metadata that it finds: its own, or that of an Apache Kafka.

What klamm has no use for stays in the log, where Kafka finds it again. What it can't do without
doing harm is a reason to refuse the directory, before anything in it is touched.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from klamm.broker.features import SUPPORTED_FEATURES
from klamm.broker.metadata.image import MetadataImage
from klamm.broker.metadata.store import MetadataStore
from klamm.log.errors import InconsistentDirectoryError

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

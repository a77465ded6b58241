"""What consumers of the classic protocol put into JoinGroup and get from SyncGroup: bytes with a
version in front, in which the protocol itself has no say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from klamm.coordinator.ports import Topics
from klamm.wire.codec import decoder_for, encode
from klamm.wire.errors import WireError
from klamm.wire.limits import DEFAULT_LIMITS
from klamm.wire.messages.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

VERSION_BYTES = 2
VERSION_MAX = 3


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """
    Raises:
        WireError: it is none.
    """
    decode = decoder_for(ConsumerProtocolSubscription, _version(metadata))
    return decode(metadata, VERSION_BYTES, DEFAULT_LIMITS)[0]


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """No bytes are no assignment.

    Raises:
        WireError: it is none.
    """
    if not assignment:
        return ConsumerProtocolAssignment()
    decode = decoder_for(ConsumerProtocolAssignment, _version(assignment))
    return decode(assignment, VERSION_BYTES, DEFAULT_LIMITS)[0]


def encoded_assignment(
    partitions: Mapping[UUID, Iterable[int]], topics: Topics, *, for_metadata: bytes
) -> bytes:
    """The assignment with the names of those topics that exist.

    Args:
        for_metadata: what the member said; the answer has the same version.
    """
    try:
        version = _version(for_metadata)
    except WireError:
        version = 0
    found = ((topics.find_by_id(topic_id), topic_id) for topic_id in sorted(partitions))
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(
                topic=topic.name, partitions=sorted(partitions[topic_id])
            )
            for topic, topic_id in found
            if topic is not None
        ]
    )
    return version.to_bytes(VERSION_BYTES, "big") + encode(assignment, version)


def _version(data: bytes) -> int:
    """The version, or the newest known one: what later ones add stands at the end.

    Raises:
        WireError: there is none.
    """
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    if len(data) < VERSION_BYTES or version < 0:
        raise WireError("the embedded consumer protocol has no version")
    return min(version, VERSION_MAX)

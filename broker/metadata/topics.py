"""Decisions about topics: pure functions from a request and the image to metadata records.

The order of the checks is the order in which Kafka's controller makes them, because a client sees
only the first one that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from klamm.broker.metadata.image import MetadataImage, ResourceType, TopicState
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.stored.metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

NAME_LENGTH_MAX = 249
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# What one request may create, as in Kafka: a batch of metadata records is atomic and so bounded.
RECORDS_PER_REQUEST_MAX = 10_000
# Beyond it, nothing of a request that creates topics is looked at.
PARTITIONS_PER_REQUEST_MAX = 10_000

USE_DEFAULT = -1

# Partitions and their replicas as a client listed them, perhaps one of them twice.
Assignments = Sequence[tuple[int, Sequence[int]]]


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A change that is not made; `code` and `message` go into the reply."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


def check_topic_name(name: str) -> None:
    """Raises Refused INVALID_TOPIC_EXCEPTION."""
    if not name:
        problem = "it is empty"
    elif name in (".", ".."):
        problem = "'.' and '..' are folder names"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"it is longer than {NAME_LENGTH_MAX} characters"
    elif not LEGAL_NAME.fullmatch(name):
        problem = "only letters, digits, '.', '_' and '-' are allowed"
    else:
        return
    raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {name!r} is invalid: {problem}.")


def unknown_topic_code(name: str) -> ErrorCode:
    """What a reply says of a topic that is not there: only an illegal name has a code of its own,
    because it can never be one."""
    try:
        check_topic_name(name)
    except Refused as refused:
        return refused.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def check_new_topic_name(name: str, image: MetadataImage) -> None:
    """A new topic needs a legal name that neither exists nor differs only in '.' and '_', which
    metrics can't tell apart."""
    existing = image.topics.get(name)
    if existing is not None:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} already exists.")
    check_topic_name(name)
    colliding = image.colliding_topic(name)
    if colliding is not None:
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic {name!r} collides with {colliding!r}: they differ only in '.' and '_'.",
        )


def plan_replicas(
    partitions: int, replication_factor: int, brokers: Sequence[int]
) -> list[list[int]]:
    """Replicas of each new partition, on the brokers that there are."""
    if replication_factor > len(brokers):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor {replication_factor} needs as many brokers; there are"
            f" {len(brokers)}.",
        )
    return [list(brokers[:replication_factor]) for _ in range(partitions)]


def check_assignment(
    replicas: Sequence[int], replication_factor: int | None, brokers: Iterable[int]
) -> None:
    """A list of replicas that a client chose itself."""
    known = set(brokers)
    if not replicas:
        problem = "it names no broker"
    elif any(broker < 0 for broker in replicas):
        problem = "a broker id is negative"
    elif len(set(replicas)) < len(replicas):
        problem = "it names a broker twice"
    elif unknown := [broker for broker in replicas if broker not in known]:
        problem = f"broker {unknown[0]} is not registered"
    elif replication_factor is not None and len(replicas) != replication_factor:
        problem = f"the other partitions have {replication_factor} replica(s)"
    else:
        return
    raise Refused(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Replicas {list(replicas)} can't be used: {problem}."
    )


def choose_replicas(
    num_partitions: int,
    replication_factor: int,
    assignments: Assignments,
    *,
    default_partitions: int,
    default_replication_factor: int,
    brokers: Sequence[int],
) -> list[list[int]]:
    """Replicas of each partition of a new topic: the client's own choice, or ours."""
    if assignments:
        return assigned_replicas(num_partitions, replication_factor, assignments, brokers)
    if replication_factor < USE_DEFAULT or replication_factor == 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor must be above 0, or -1 for the default.",
        )
    if num_partitions < USE_DEFAULT or num_partitions == 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            "The number of partitions must be above 0, or -1 for the default.",
        )
    if num_partitions == USE_DEFAULT:
        num_partitions = default_partitions
    if replication_factor == USE_DEFAULT:
        replication_factor = default_replication_factor
    check_record_count(num_partitions)
    return plan_replicas(num_partitions, replication_factor, brokers)


def assigned_replicas(
    num_partitions: int,
    replication_factor: int,
    assignments: Assignments,
    brokers: Sequence[int],
) -> list[list[int]]:
    if replication_factor != USE_DEFAULT or num_partitions != USE_DEFAULT:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "With replicas assigned by hand, replication factor and partitions must be -1.",
        )
    expected: int | None = None
    chosen: dict[int, list[int]] = {}
    for index, replicas in assignments:
        if index in chosen:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {index} is assigned twice."
            )
        check_assignment(replicas, expected, brokers)
        expected = len(replicas)
        chosen[index] = list(replicas)
    if set(chosen) != set(range(len(chosen))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 without gaps."
        )
    check_record_count(len(chosen))
    return [chosen[index] for index in range(len(chosen))]


def check_record_count(count: int) -> None:
    if count >= RECORDS_PER_REQUEST_MAX:
        raise Refused(
            ErrorCode.POLICY_VIOLATION,
            f"One request may create fewer than {RECORDS_PER_REQUEST_MAX} partitions.",
        )


def topic_records(
    name: str,
    topic_id: UUID,
    replicas: Sequence[Sequence[int]],
    configs: Mapping[str, str],
    place: Callable[[], UUID],
) -> Iterator[TopicRecord | ConfigRecord | PartitionRecord]:
    """The records that make a topic, in Kafka's order: topic, configs, partitions.

    Args:
        place: says in which directory the next partition goes.
    """
    yield TopicRecord(name=name, topic_id=topic_id)
    for key, value in configs.items():
        yield ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value
        )
    yield from partition_records(topic_id, 0, replicas, place)


def partition_records(
    topic_id: UUID, first: int, replicas: Sequence[Sequence[int]], place: Callable[[], UUID]
) -> Iterator[PartitionRecord]:
    for number, chosen in enumerate(replicas):
        yield PartitionRecord(
            partition_id=first + number,
            topic_id=topic_id,
            replicas=list(chosen),
            isr=list(chosen),
            leader=chosen[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[place() for _ in chosen],
        )


def plan_new_partitions(
    topic: TopicState | None,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    brokers: Sequence[int],
    records_left: int = RECORDS_PER_REQUEST_MAX,
) -> list[list[int]]:
    """Replicas of the partitions that a topic gets in addition.

    Args:
        records_left: how many the request may still add, over all its topics.
    """
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    existing = len(topic.partitions)
    if count <= existing:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name!r} has {existing} partition(s); {count} would be no increase.",
        )
    additional = count - existing
    if additional > records_left:
        raise Refused(
            ErrorCode.POLICY_VIOLATION,
            f"One request may add at most {RECORDS_PER_REQUEST_MAX} partitions.",
        )
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return plan_replicas(additional, replication_factor, brokers)
    if len(assignments) != additional:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{additional} partition(s) are to be added, but {len(assignments)} are assigned.",
        )
    for replicas in assignments:
        check_assignment(replicas, replication_factor, brokers)
    return [list(replicas) for replicas in assignments]


def removal_record(topic: TopicState) -> RemoveTopicRecord:
    return RemoveTopicRecord(topic_id=topic.topic_id)

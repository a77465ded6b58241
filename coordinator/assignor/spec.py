"""What an assignor is given and what it returns."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import TopicDescription
from klamm.wire.errors import ErrorCode

# The partitions of one member by topic. A topic of which the member gets nothing is left out.
Assignment: TypeAlias = dict[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member of a group as an assignor sees it.

    Args:
        topic_ids: the topics that it subscribes to.
        rack_id: where it runs, if it says so.
        instance_id: its name if it is a static member.
        assigned: its target assignment so far, which an assignor may try to keep.
    """

    topic_ids: frozenset[UUID]
    rack_id: str | None
    instance_id: str | None
    assigned: Mapping[UUID, frozenset[int]]


class Assignor(Protocol):
    """Distributes partitions over the members of a group: a pure function of its arguments."""

    @property
    def name(self) -> str:
        """The name by which clients and `group.consumer.assignors` choose it."""

    def assign(
        self, members: Mapping[str, MemberSpec], topics: Mapping[UUID, TopicDescription]
    ) -> dict[str, Assignment]:
        """The target assignment of each member, by member id.

        Every partition of every topic that somebody subscribes to goes to exactly one of its
        subscribers.

        Args:
            members: by member id.
            topics: at least the topics that members subscribe to.

        Raises:
            CoordinatorError: UNKNOWN_SERVER_ERROR, because a member subscribes to a topic that is
                not among the topics.
        """


def partition_counts(
    members: Mapping[str, MemberSpec], topics: Mapping[UUID, TopicDescription]
) -> dict[UUID, int]:
    """How many partitions each topic has that somebody subscribes to, in the order of their ids.

    Raises:
        CoordinatorError: UNKNOWN_SERVER_ERROR, because one of them is not among the topics.
    """
    subscribed = frozenset[UUID]().union(*(member.topic_ids for member in members.values()))
    missing = subscribed - topics.keys()
    if missing:
        raise CoordinatorError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Members are subscribed to topic {_shown(min(missing))} which doesn't exist in the "
            "topic metadata.",
        )
    return {topic: topics[topic].partition_count for topic in sorted(subscribed, key=_signed)}


def _shown(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode("ascii").rstrip("=")


def _signed(topic_id: UUID) -> int:
    """Orders ids as Kafka does, as two signed numbers of 64 bits."""
    return topic_id.int ^ (1 << 127 | 1 << 63)

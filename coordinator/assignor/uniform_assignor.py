"""`uniform`: all members get equally many partitions, and keep those they have if that allows it.

Racks have no say, as in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from klamm.coordinator.assignor.heterogeneous import assign_heterogeneous
from klamm.coordinator.assignor.homogeneous import assign_homogeneous
from klamm.coordinator.assignor.spec import Assignment, MemberSpec, partition_counts
from klamm.coordinator.ports import TopicDescription


class UniformAssignor:
    name = "uniform"

    def assign(
        self, members: Mapping[str, MemberSpec], topics: Mapping[UUID, TopicDescription]
    ) -> dict[str, Assignment]:
        if not members:
            return {}
        counts = partition_counts(members, topics)
        # Chance has no part in the result: not the order in which members joined, nor hashing.
        members = {member_id: members[member_id] for member_id in sorted(members)}
        # Whoever subscribes to all topics that anybody subscribes to, subscribes to the same ones.
        if all(len(member.topic_ids) == len(counts) for member in members.values()):
            return assign_homogeneous(members, counts)
        return assign_heterogeneous(members, counts)

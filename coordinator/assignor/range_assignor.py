"""`range`: each member gets a contiguous range of the partitions of every topic it subscribes to.

Members take their ranges in one fixed order, so topics with equally many partitions and the same
subscribers are co-partitioned: a member has the same partition numbers of all of them. Static
members come first, by instance id, and so keep their ranges when they return under another member
id. Neither the current assignment nor racks have a say, as in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from klamm.coordinator.assignor.spec import Assignment, MemberSpec, partition_counts
from klamm.coordinator.java_strings import sort_key
from klamm.coordinator.ports import TopicDescription


class RangeAssignor:
    name = "range"

    def assign(
        self, members: Mapping[str, MemberSpec], topics: Mapping[UUID, TopicDescription]
    ) -> dict[str, Assignment]:
        counts = partition_counts(members, topics)
        target: dict[str, Assignment] = {}
        subscribers: dict[UUID, list[Assignment]] = {topic: [] for topic in counts}
        for member_id in sorted(members, key=lambda id_: _order(id_, members[id_])):
            target[member_id] = {}
            for topic in members[member_id].topic_ids:
                subscribers[topic].append(target[member_id])
        for topic, assignments in subscribers.items():
            quota, extra = divmod(counts[topic], len(assignments))
            # The first ones have one partition more, and it may be that only they have any.
            receivers = assignments if quota else assignments[:extra]
            start = 0
            for position, assignment in enumerate(receivers):
                end = start + quota + (position < extra)
                assignment[topic] = frozenset(range(start, end))
                start = end
        return target


def _order(member_id: str, member: MemberSpec) -> tuple[bool, bytes]:
    """Static members by instance id, then the others by member id."""
    if member.instance_id is not None:
        return False, sort_key(member.instance_id)
    return True, sort_key(member_id)

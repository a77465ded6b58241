"""The `uniform` assignor when members subscribe to different topics.

Members keep what they have and still want. What nobody has goes, topic by topic, to the subscriber
with the fewest partitions of all topics. Then, again topic by topic, partitions move from the
subscribers with the most to those with the fewest until they differ by at most one, or until those
with the most have none of this topic to give. Moves of one topic unbalance another one whose
subscribers are not the same, so the rounds repeat until nothing moves, or up to a limit.

That balances each topic, not always the whole group: three members can end with 9, 10 and 11
partitions when the first and the last have no topic in common.

Every choice is Kafka's, so that the results are equal for members in the same order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from uuid import UUID

from klamm.coordinator.assignor.spec import Assignment, MemberSpec

# Kafka's. One round is enough, and one more to see that, unless subscriptions overlap in part.
BALANCE_ROUNDS_MAX = 16


def assign_heterogeneous(
    members: Mapping[str, MemberSpec], counts: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """The target assignment of each member.

    Args:
        members: in the order in which equally loaded ones get partitions.
        counts: how many partitions each topic has, in the order of the topic ids.
    """
    builder = _Builder(members, counts)
    builder.assign_remaining()
    builder.balance()
    return builder.target()


class _Topic:
    """A topic while its partitions are distributed; members are known by their index.

    Args:
        subscribers: in ascending order.
        owned: the partitions of each subscriber that has any.
        unowned: the partitions that nobody has at the start.
    """

    def __init__(self, topic_id: UUID, partition_count: int) -> None:
        self.topic_id = topic_id
        self.partition_count = partition_count
        self.subscribers: list[int] = []
        self.owned = defaultdict[int, list[int]](list)
        self.unowned = set(range(partition_count))

    def claim(self, member: int, partitions: frozenset[int]) -> int:
        """A subscriber keeps what it had; returns how many partitions that are."""
        kept = partitions & self.unowned
        self.unowned -= kept
        self.owned[member] += kept
        return len(kept)

    def order(self) -> tuple[float, int]:
        """Topics with many partitions for each subscriber go first, and leave it to the others to
        even out what they leave uneven."""
        return -self.partition_count / len(self.subscribers), len(self.subscribers)


class _Builder:
    def __init__(self, members: Mapping[str, MemberSpec], counts: Mapping[UUID, int]) -> None:
        self._members = members
        self._sizes = [0] * len(members)  # how many partitions of all topics each member has
        topics = {topic_id: _Topic(topic_id, count) for topic_id, count in counts.items()}
        for index, member in enumerate(members.values()):
            for topic_id in member.topic_ids:
                topics[topic_id].subscribers.append(index)
            for topic_id in member.assigned.keys() & member.topic_ids:
                self._sizes[index] += topics[topic_id].claim(index, member.assigned[topic_id])
        self._topics = sorted(topics.values(), key=_Topic.order)

    def assign_remaining(self) -> None:
        """Give each partition that nobody has to the least loaded subscriber."""
        for topic in self._topics:
            takers = _least_loaded(self._by_size(topic), self._sizes)
            for partition, (taker, _) in zip(sorted(topic.unowned), takers, strict=False):
                topic.owned[taker].append(partition)
                self._sizes[taker] += 1

    def balance(self) -> None:
        """Balance topic by topic, until all others have stayed as they were since the last move."""
        topics = [topic for topic in self._topics if len(topic.subscribers) > 1]
        settled = 0
        for topic in islice(cycle(topics), BALANCE_ROUNDS_MAX * len(topics)):
            settled = 1 if self._balance(topic) else settled + 1
            if settled == len(topics):
                return

    def _balance(self, topic: _Topic) -> bool:
        """Move partitions of one topic between its subscribers; returns whether any has moved."""
        sizes, owned = self._sizes, topic.owned
        subscribers = self._by_size(topic)
        if sizes[subscribers[-1]] - sizes[subscribers[0]] <= 1:
            return False
        for partitions in owned.values():
            partitions.sort()
        has_moved = False
        givers = _most_loaded(subscribers, sizes, owned)
        takers = _least_loaded(subscribers, sizes)
        for (giver, most), (taker, least) in zip(givers, takers, strict=False):
            if most - least <= 1:
                break
            owned[taker].append(owned[giver].pop())
            sizes[giver] -= 1
            sizes[taker] += 1
            has_moved = True
        return has_moved

    def _by_size(self, topic: _Topic) -> list[int]:
        return sorted(topic.subscribers, key=self._sizes.__getitem__)

    def target(self) -> dict[str, Assignment]:
        assignments: list[Assignment] = [{} for _ in self._members]
        for topic in self._topics:
            for index, partitions in topic.owned.items():
                if partitions:
                    assignments[index][topic.topic_id] = frozenset(partitions)
        return dict(zip(self._members, assignments, strict=True))


def _least_loaded(members: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Who gets the next partition and how many it has so far, again and again.

    The members with the fewest partitions get one each. Then those join them that had one more
    from the start, and all of these get one each, and so on.

    Args:
        members: ordered by size.
        sizes: must grow by one for the member that was returned before the next is asked for.
    """
    level = sizes[members[0]]
    end = 0
    while True:
        while end < len(members) and sizes[members[end]] == level:
            end += 1
        for member in members[:end]:
            yield member, level
        level += 1


def _most_loaded(
    members: Sequence[int], sizes: Sequence[int], owned: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """Who gives the next partition and how many it has still, until nobody has any to give.

    The mirror image of `_least_loaded`, except that members drop out that own nothing.

    Args:
        members: ordered by size.
        sizes: must shrink by one for the member that was returned before the next is asked for.
        owned: what each member can give.
    """
    givers = deque[int]()
    start = len(members)
    level = 0
    while givers or start:
        level = level - 1 if givers else sizes[members[start - 1]]
        while start and sizes[members[start - 1]] == level:
            start -= 1
            givers.append(members[start])
        again = deque[int]()
        for member in givers:
            if owned.get(member):
                yield member, level
                again.append(member)
            else:
                # Kafka fills the gap with the first of this turn; the next turn shows it.
                again.rotate(-1)
        givers = again

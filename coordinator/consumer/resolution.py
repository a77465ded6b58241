"""Looking up what the regular expressions of a group mean, while the group goes on.

The heartbeat that brings an expression is answered before its topics are known. When they are, the
group gets a new epoch, and the next heartbeat a target with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from klamm.coordinator.consumer import records
from klamm.coordinator.consumer.expressions import ResolvedExpression, matching_topics
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.topics import SubscribedTopics
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard

NOTHING = ResolvedExpression(frozenset(), version=-1, timestamp=-1)


class Resolutions:
    """The look-ups under way, at most one for each group."""

    def __init__(self, shard: Shard, topics: SubscribedTopics) -> None:
        self._shard = shard
        self._topics = topics
        self._group_ids: set[str] = set()

    def is_under_way(self, group_id: str) -> bool:
        return group_id in self._group_ids

    def start(self, group_id: str, expressions: frozenset[str]) -> None:
        names, version, now_ms = self._topics.names(), self._topics.version, self._shard.now_ms()

        def store(found: Mapping[str, frozenset[str]]) -> None:
            self._group_ids.discard(group_id)
            resolved = {
                expression: ResolvedExpression(topics, version, now_ms)
                for expression, topics in found.items()
            }
            try:
                self._store(group_id, resolved)
            except CoordinatorError:
                # The expressions are as old as before, so that a heartbeat will try again.
                return

        self._group_ids.add(group_id)
        self._shard.background.run(lambda: matching_topics(sorted(expressions), names), store)

    def _store(self, group_id: str, found: Mapping[str, ResolvedExpression]) -> None:
        group = self._shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        subscribed = {
            expression: resolved
            for expression, resolved in found.items()
            if group.expression_members[expression]
        }
        written = [
            records.expression_record(group_id, expression, resolved)
            for expression, resolved in subscribed.items()
        ]
        if not written:
            return
        names = group.subscribed_topics(group.members.values(), {**group.expressions, **subscribed})
        metadata_hash = self._topics.hash_of(names)
        has_changed = metadata_hash != group.metadata_hash or any(
            group.expressions.get(expression, NOTHING).topics != resolved.topics
            for expression, resolved in subscribed.items()
        )
        if has_changed:
            epoch = group.group_epoch + 1
            written.append(records.epoch_record(group_id, epoch, metadata_hash))
        self._shard.journal.append(written)
        if has_changed:
            group.is_metadata_current = True

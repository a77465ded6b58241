"""The topics as the groups of a shard see them, and when they have changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from klamm.coordinator.metadata_hash import group_hash, topic_hash
from klamm.coordinator.ports import TopicDescription, Topics


class SubscribedTopics:
    """Remembers the hashes of topics: groups share them, and few change."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._hashes: dict[str, tuple[TopicDescription, int]] = {}
        # The version that brought the last new topic, as far as this coordinator knows.
        self._last_new_version = topics.version

    @property
    def version(self) -> int:
        return self._topics.version

    def names(self) -> tuple[str, ...]:
        return tuple(self._topics.names())

    def find(self, names: Iterable[str]) -> dict[UUID, TopicDescription]:
        """Those of the topics that exist."""
        found = map(self._topics.find, names)
        return {topic.topic_id: topic for topic in found if topic is not None}

    def hash_of(self, names: Iterable[str]) -> int:
        """The hash over those of the topics that exist."""
        return group_hash(
            {topic.name: self._topic_hash(topic) for topic in self.find(names).values()}
        )

    def _topic_hash(self, topic: TopicDescription) -> int:
        known = self._hashes.get(topic.name)
        if known is None or known[0] != topic:
            known = self._hashes[topic.name] = topic, topic_hash(topic)
        return known[1]

    def on_changed(self, names: Collection[str]) -> None:
        """Topics have come, gone or grown; all that are there now may be new ones."""
        for name in names:
            self._hashes.pop(name, None)
        if self.find(names):
            self._last_new_version = self._topics.version

    def has_new_since(self, version: int) -> bool:
        """Whether a topic is younger than the version. One that is yet to come was written where
        topics were counted in another way, and says nothing."""
        return not self._last_new_version <= version <= self._topics.version

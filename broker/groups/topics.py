"""The topics as group coordinators see them: a view of the metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from klamm.broker.metadata.image import MetadataImage, TopicState
from klamm.coordinator.ports import TopicDescription


class MetadataTopics:
    """The topics that exist now (`coordinator.ports.Topics`).

    Args:
        rack: of this broker, which holds every replica.
    """

    def __init__(self, image: MetadataImage, rack: str | None) -> None:
        self._image = image
        self._racks = frozenset() if rack is None else frozenset({rack})
        self._descriptions: dict[UUID, TopicDescription] = {}

    @property
    def version(self) -> int:
        return self._image.version

    def names(self) -> Iterable[str]:
        return list(self._image.topics)

    def find(self, name: str) -> TopicDescription | None:
        topic = self._image.topics.get(name)
        return None if topic is None else self._describe(topic)

    def find_by_id(self, topic_id: UUID) -> TopicDescription | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else self._describe(topic)

    def _describe(self, topic: TopicState) -> TopicDescription:
        known = self._descriptions.get(topic.topic_id)
        if known is None or known.partition_count != len(topic.partitions):
            if len(self._descriptions) > len(self._image.topics):
                # Some are of topics that have gone.
                self._descriptions.clear()
            known = TopicDescription(
                topic.name, topic.topic_id, (self._racks,) * len(topic.partitions)
            )
            self._descriptions[topic.topic_id] = known
        return known

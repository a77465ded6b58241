"""The settings of groups: the broker's, and those that one group has for itself."""

from __future__ import annotations

from collections.abc import Mapping

from klamm.broker.config import ServerConfig
from klamm.broker.metadata.image import MetadataImage, ResourceType
from klamm.coordinator.settings import GroupSettings

MINUTE_MS = 60_000
# A new classic group waits so long at least for members that start together, and again while some
# come. They would else fall into the sync of the first of them, and librdkafka, when it is told of
# a rebalance in progress then, joins again only after two seconds.
GATHERING_MS = 5


def group_settings(config: ServerConfig) -> GroupSettings:
    return GroupSettings(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=max(config.group_initial_rebalance_delay_ms, GATHERING_MS),
        group_max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        group_consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
        group_consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        group_consumer_assignment_interval_ms=config.group_consumer_assignment_interval_ms,
        group_consumer_max_size=config.group_consumer_max_size,
        group_consumer_assignors=config.group_consumer_assignors,
        group_consumer_migration_policy=config.group_consumer_migration_policy.lower(),
        group_consumer_regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
    )


def group_configs(image: MetadataImage, config: ServerConfig, group_id: str) -> Mapping[str, int]:
    """What is set for a group, moved into the limits of the broker where it lies outside."""
    limits = {
        "consumer.session.timeout.ms": (
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        "consumer.heartbeat.interval.ms": (
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        "consumer.assignment.interval.ms": (
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    }
    given = image.resource_configs(ResourceType.GROUP, group_id)
    return {
        name: min(max(int(text), limits[name][0]), limits[name][1])
        for name, text in given.items()
        if name in limits
    }

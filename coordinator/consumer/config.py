"""The times of a group: its own configs, or those of the broker."""

from __future__ import annotations

from klamm.coordinator.group import Shard


def session_timeout_ms(shard: Shard, group_id: str) -> int:
    """How long a member may be silent."""
    default = shard.settings.group_consumer_session_timeout_ms
    return shard.group_configs(group_id).get("consumer.session.timeout.ms", default)


def heartbeat_interval_ms(shard: Shard, group_id: str) -> int:
    """How often members are asked to send heartbeats."""
    default = shard.settings.group_consumer_heartbeat_interval_ms
    return shard.group_configs(group_id).get("consumer.heartbeat.interval.ms", default)


def assignment_interval_ms(shard: Shard, group_id: str) -> int:
    """How much time is at least between two target assignments."""
    default = shard.settings.group_consumer_assignment_interval_ms
    return shard.group_configs(group_id).get("consumer.assignment.interval.ms", default)

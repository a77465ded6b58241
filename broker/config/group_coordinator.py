"""The settings of groups and their offsets, typed: a part of `ServerConfig`."""

from collections.abc import Iterator
from dataclasses import dataclass

from klamm.broker.config.errors import ConfigError


@dataclass(frozen=True, eq=False, repr=False)
class GroupCoordinatorConfig:
    """Attributes are Kafka's property names, as in `ServerConfig`."""

    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 1
    offsets_topic_segment_bytes: int = 100 * 1024 * 1024
    offsets_topic_compression_codec: int = 0
    offsets_load_buffer_size: int = 5 * 1024 * 1024
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_retention_check_interval_ms: int = 600_000

    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 0
    group_max_size: int = 1000

    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = 1000
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000

    def check_group_limits(self) -> None:
        """Raises ConfigError where a setting lies outside of the limits given for it."""
        if "classic" not in self.group_coordinator_rebalance_protocols:
            raise ConfigError("group.coordinator.rebalance.protocols must name classic")
        for smaller, larger in _at_most():
            if getattr(self, smaller) > getattr(self, larger):
                raise ConfigError(f"{_shown(self, smaller)} must be at most {_shown(self, larger)}")
        heartbeat, session = (
            "group_consumer_heartbeat_interval_ms",
            "group_consumer_session_timeout_ms",
        )
        if getattr(self, heartbeat) >= getattr(self, session):
            raise ConfigError(
                f"{_shown(self, heartbeat)} must be less than {_shown(self, session)}"
            )


def _at_most() -> Iterator[tuple[str, str]]:
    for name in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms"):
        yield f"group_consumer_min_{name}", f"group_consumer_max_{name}"
        yield f"group_consumer_min_{name}", f"group_consumer_{name}"
        yield f"group_consumer_{name}", f"group_consumer_max_{name}"


def _shown(config: GroupCoordinatorConfig, attribute: str) -> str:
    return f"{attribute.replace('_', '.')}={getattr(config, attribute)}"

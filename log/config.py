"""The settings of one log, under Kafka's topic configuration names and with Kafka's defaults.

A LogConfig is immutable; a change at run time replaces the whole object in PartitionLog.config,
so no reader ever sees half of a change.
"""

from dataclasses import dataclass
from functools import cached_property

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class LogConfig:
    """Topic configuration as far as the log needs it (defaults of Apache Kafka 4.3)."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    index_interval_bytes: int = 4096
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_after_max_ms: int = HOUR_MS
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1024 * 1024 * 1024
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * DAY_MS
    unclean_leader_election_enable: bool = False

    # Not Kafka's: acks=all answers after fdatasync unless this is off (flush.before.ack).
    flush_before_ack: bool = True

    @property
    def compacts(self) -> bool:
        """Whether records need a key, because an old value is dropped when a newer one exists."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old records go by time, size or DeleteRecords."""
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        """Whether the broker's clock replaces the timestamps of the producer."""
        return self.message_timestamp_type == "LogAppendTime"

    # Asked for every batch, so they are worked out once.

    @cached_property
    def trusts_headers(self) -> bool:
        """Whether nothing here needs the records of each batch."""
        return (
            self.compression_type == "producer"
            and not self.compacts
            and (self.uses_log_append_time or self.message_timestamp_before_max_ms == INT64_MAX)
        )

    @cached_property
    def timestamp_ahead_max_ms(self) -> int:
        """How far the timestamp of a producer may lie ahead of the clock."""
        return INT64_MAX if self.uses_log_append_time else self.message_timestamp_after_max_ms


DEFAULT_CONFIG = LogConfig()

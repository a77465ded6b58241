"""What the logs of a topic follow: its own configs, the broker's settings, the defaults."""

import pytest

from klamm.broker.config import load, topic_log_config, validate_topic_configs
from klamm.broker.tests.config.refusals import refusal
from klamm.log.config import LogConfig

HOUR_MS = 3_600_000
INT64_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("settings", "attribute", "value"),
    [
        ({"log.segment.bytes": "2000000"}, "segment_bytes", 2_000_000),
        ({"message.max.bytes": "100"}, "max_message_bytes", 100),
        ({"log.index.size.max.bytes": "4096"}, "segment_index_bytes", 4096),
        ({"log.flush.interval.messages": "1"}, "flush_messages", 1),
        ({"log.segment.delete.delay.ms": "5"}, "file_delete_delay_ms", 5),
        ({"log.cleaner.min.cleanable.ratio": "1"}, "min_cleanable_dirty_ratio", 1.0),
        ({"log.cleanup.policy": "delete, compact"}, "cleanup_policy", {"compact", "delete"}),
        ({"log.cleanup.policy": ""}, "cleanup_policy", set()),
        ({"log.message.timestamp.type": "LogAppendTime"}, "uses_log_append_time", True),
        ({"unclean.leader.election.enable": "true"}, "unclean_leader_election_enable", True),
        ({"min.insync.replicas": "2"}, "min_insync_replicas", 2),
        ({"flush.before.ack": "false"}, "flush_before_ack", False),
        # The finest unit that is set counts.
        ({"log.roll.hours": "2"}, "segment_ms", 2 * HOUR_MS),
        ({"log.roll.hours": "2", "log.roll.ms": "5"}, "segment_ms", 5),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", HOUR_MS),
        ({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "0"}, "segment_jitter_ms", 0),
        ({"log.retention.hours": "1"}, "retention_ms", HOUR_MS),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, "retention_ms", 120_000),
        (
            {"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"},
            *("retention_ms", 3),
        ),
        ({"log.flush.scheduler.interval.ms": "7"}, "flush_ms", 7),
        ({"log.flush.scheduler.interval.ms": "7", "log.flush.interval.ms": "8"}, "flush_ms", 8),
        # Any negative number means for ever.
        ({"log.retention.hours": "-1"}, "retention_ms", -1),
        ({"log.retention.minutes": "-5"}, "retention_ms", -1),
        ({"log.retention.ms": "-7"}, "retention_ms", -1),
        # No overflow, however large the unit.
        ({"log.retention.hours": "2147483647"}, "retention_ms", 2147483647 * HOUR_MS),
    ],
)
def test_broker_settings_in_the_units_of_topics(
    settings: dict[str, str], attribute: str, value: object
) -> None:
    config = load(None, settings)
    assert getattr(config.log_defaults, attribute) == value
    assert topic_log_config(config, {}) is config.log_defaults


def test_a_topic_goes_over_the_broker() -> None:
    config = load(None, {"log.retention.hours": "1", "compression.type": "gzip"})
    log = topic_log_config(config, {"retention.ms": " 5 ", "cleanup.policy": "compact"})
    assert (log.retention_ms, log.compression_type) == (5, "gzip")
    assert log.compacts
    assert config.log_defaults.retention_ms == HOUR_MS


def test_the_hidden_segment_size_takes_the_place_of_the_other() -> None:
    overrides = {"segment.bytes": "2000000", "internal.segment.bytes": "100"}
    assert topic_log_config(load(None, {}), overrides).segment_bytes == 100


def test_shortcuts_of_server_config() -> None:
    config = load(None, {"message.max.bytes": "7", "flush.before.ack": "false"})
    assert (config.message_max_bytes, config.flush_before_ack) == (7, False)
    assert load(None, {}).log_defaults == LogConfig()


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"retention.ms": "-1"},
        {"cleanup.policy": ""},
        {"leader.replication.throttled.replicas": "0:1,1:1"},
        {"remote.storage.enable": "FALSE"},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"},
        {"max.message.bytes": str(2**31 - 1)},
        {"flush.before.ack": "false"},
    ],
)
def test_valid_topic_configs(configs: dict[str, str]) -> None:
    assert refusal(validate_topic_configs, configs) is None


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        (
            {"retention.ms": None},
            "topic config retention.ms has no value; give one or leave it out",
        ),
        ({"retention.m": "1"}, "unknown topic config retention.m; did you mean retention.ms?"),
        ({"": "1"}, "unknown topic config "),
        ({"x" * 5000: "1"}, f"unknown topic config {'x' * 100}…"),
        ({"a\nb": "1"}, "unknown topic config a?b"),
        ({"segment.ms": "0"}, "segment.ms=0 must be at least 1"),
        ({"retention.ms": "-2"}, "retention.ms=-2 must be at least -1"),
        (
            {"remote.storage.enable": "true"},
            "remote.storage.enable=true is not supported: klamm ha",
        ),
        ({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"}, "min.compaction.lag.ms=6 i"),
        # What comes first is Kafka's order: nulls, names, values, how they fit.
        ({"segment.ms": "0", "no.such": "1", "retention.ms": None}, "topic config retention.ms ha"),
        ({"segment.ms": "0", "no.such": "1"}, "unknown topic config no.such"),
    ],
)
def test_invalid_topic_configs(configs: dict[str, str | None], text: str) -> None:
    answer = refusal(validate_topic_configs, configs)
    assert answer is not None
    assert answer.startswith(text)


def test_a_topic_config_must_fit_what_the_broker_says() -> None:
    server = load(None, {"log.cleaner.max.compaction.lag.ms": "10"})
    assert refusal(validate_topic_configs, {"min.compaction.lag.ms": "11"}) is None
    assert refusal(validate_topic_configs, {"min.compaction.lag.ms": "11"}, server) is not None


def test_a_stored_config_that_is_unknown_here_is_refused() -> None:
    answer = refusal(topic_log_config, load(None, {}), {"from.the.future": "1"})
    assert answer == "unknown topic config from.the.future"


def test_the_largest_numbers() -> None:
    log = topic_log_config(load(None, {}), {"segment.ms": str(INT64_MAX)})
    assert log.segment_ms == INT64_MAX

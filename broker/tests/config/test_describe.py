"""Values, sources and synonyms, as Apache Kafka 4.3.1 told them when it was set up like this.

The comparison with a running Kafka is in compat_tests/twin/test_describe_configs.py; klamm cannot
change settings at run time yet, so what Kafka says after such changes is written down here.
"""

import logging
from collections.abc import Iterable, Mapping

import pytest

from klamm.broker.config import ServerConfig, effective_topic_configs, load, tables
from klamm.broker.config.definition import ConfigType
from klamm.broker.config.describe import (
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from klamm.broker.config.entry import ConfigEntry, ConfigSource
from klamm.broker.config.loggers import describe_loggers
from klamm.broker.config.order import hash_map_order
from klamm.broker.tests.config.refusals import refusal

TOPIC, BROKER, CLUSTER, STATIC, DEFAULT = (ConfigSource(number) for number in (1, 2, 3, 4, 5))
SECRET = "correct-horse-battery"

STATIC_SETTINGS = {"node.id": "1", "log.retention.hours": "168", "log.segment.bytes": "1073741824"}
CLUSTER_SETTINGS = {
    "log.retention.ms": "2000",
    "log.roll.ms": " 3000 ",
    "log.cleaner.io.max.bytes.per.second": "1e7",
    "follower.replication.throttled.rate": "777",
    "compression.type": "gzip",
    "min.insync.replicas": "1",
}
BROKER_SETTINGS = {
    "log.retention.ms": "1000",
    "leader.replication.throttled.rate": "12345",
    "listener.name.plaintext.ssl.keystore.password": SECRET,
    "listener.name.plaintext.ssl.keystore.type": "PKCS12",
    "message.max.bytes": "2000000",
}


@pytest.fixture(scope="module")
def server() -> ServerConfig:
    return load(None, STATIC_SETTINGS).with_dynamic(CLUSTER_SETTINGS, BROKER_SETTINGS)


def by_name(entries: Iterable[ConfigEntry]) -> Mapping[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def told(entry: ConfigEntry) -> tuple[str | None, int, list[tuple[str, str | None, int]]]:
    """The value, its source and its synonyms, with numbers for sources as on the wire."""
    synonyms = [(one.name, one.value, int(one.source)) for one in entry.synonyms]
    return entry.value, int(entry.config_source), synonyms


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log.segment.bytes", ("1073741824", 4, [(4, "1073741824"), (5, "1073741824")])),
        ("message.max.bytes", ("2000000", 2, [(2, "2000000"), (5, "1048588")])),
        ("compression.type", ("gzip", 3, [(3, "gzip"), (5, "producer")])),
        (
            "log.cleaner.io.max.bytes.per.second",
            ("1.0E7", 3, [(3, "1e7"), (5, "1.7976931348623157E308")]),
        ),
        ("leader.replication.throttled.rate", ("12345", 2, [(2, "12345")])),
        ("follower.replication.throttled.rate", ("777", 3, [(3, "777")])),
        ("ssl.keystore.type", ("JKS", 5, [(5, "JKS")])),
        ("ssl.keystore.password", (None, 5, [])),
        ("listener.name.plaintext.ssl.keystore.password", (None, 2, [(2, None)])),
        ("log.retention.minutes", (None, 5, [])),
        ("log.roll.hours", ("168", 5, [(5, "168")])),
        ("num.partitions", ("1", 5, [(5, "1")])),
        ("broker.id", ("1", 4, [(4, "1"), (5, "1")])),
        ("flush.before.ack", ("true", 5, [(5, "true")])),
    ],
)
def test_broker_settings(
    server: ServerConfig, name: str, expected: tuple[str | None, int, list[tuple[int, str]]]
) -> None:
    value, source, synonyms = expected
    entry = by_name(describe_broker(server))[name]
    assert told(entry) == (value, source, [(name, text, number) for number, text in synonyms])


def test_synonyms_under_other_names(server: ServerConfig) -> None:
    entries = by_name(describe_broker(server))
    assert told(entries["log.retention.ms"]) == (
        *("1000", 2),
        [
            ("log.retention.ms", "1000", 2),
            ("log.retention.ms", "2000", 3),
            ("log.retention.hours", "168", 4),
            ("log.retention.hours", "168", 5),
        ],
    )
    assert told(entries["log.roll.ms"]) == (
        *("3000", 3),
        [("log.roll.ms", " 3000 ", 3), ("log.roll.hours", "168", 5)],
    )
    assert told(entries["log.retention.hours"]) == (
        *("168", 4),
        [("log.retention.hours", "168", 4), ("log.retention.hours", "168", 5)],
    )
    assert told(entries["listener.name.plaintext.ssl.keystore.type"]) == (
        *("PKCS12", 2),
        [
            ("listener.name.plaintext.ssl.keystore.type", "PKCS12", 2),
            ("ssl.keystore.type", "JKS", 5),
        ],
    )


@pytest.mark.parametrize(
    ("name", "read_only", "kind", "documented"),
    [
        ("log.retention.ms", False, ConfigType.LONG, True),
        ("log.retention.hours", True, ConfigType.INT, True),
        ("ssl.keystore.password", False, ConfigType.PASSWORD, True),
        ("leader.replication.throttled.rate", False, ConfigType.LONG, False),
        ("listener.name.plaintext.ssl.keystore.type", True, ConfigType.STRING, False),
        ("listener.name.plaintext.ssl.keystore.password", True, ConfigType.PASSWORD, False),
    ],
)
def test_type_and_read_only(
    server: ServerConfig, name: str, read_only: bool, kind: ConfigType, documented: bool
) -> None:
    entry = by_name(describe_broker(server))[name]
    assert (entry.read_only, entry.config_type) == (read_only, kind)
    assert entry.is_sensitive == (kind is ConfigType.PASSWORD)
    assert (entry.documentation is not None) == documented


def test_hidden_settings_come_first_and_only_where_they_are_set(server: ServerConfig) -> None:
    given = load(None, {"log.initial.task.delay.ms": " 5 ", "rsm.config.key": SECRET})
    hidden = describe_broker(given)[:2]
    assert {entry.name: told(entry) for entry in hidden} == {
        "log.initial.task.delay.ms": (
            *(" 5 ", 4),
            [("log.initial.task.delay.ms", " 5 ", 4), ("log.initial.task.delay.ms", "30000", 5)],
        ),
        "rsm.config.key": (None, 4, [("rsm.config.key", None, 4)]),
    }
    assert by_name(hidden)["rsm.config.key"].is_sensitive
    assert by_name(hidden)["rsm.config.key"].config_type is ConfigType.UNKNOWN
    assert not any(
        definition.internal and definition.name in by_name(describe_broker(server))
        for definition in tables.broker_definitions().values()
    )


def test_what_is_set_for_all_brokers_is_shown_as_it_was_written(server: ServerConfig) -> None:
    entries = by_name(describe_broker_defaults(server))
    assert {name: told(entry) for name, entry in entries.items()} == {
        name: (text, 3, [(name, text, 3)]) for name, text in CLUSTER_SETTINGS.items()
    }
    assert not any(entry.read_only for entry in entries.values())
    assert describe_broker_defaults(load(None, STATIC_SETTINGS)) == ()


def test_topic_configs(server: ServerConfig) -> None:
    inherited = by_name(describe_topic(server, {}))
    assert told(inherited["retention.ms"]) == (
        *("1000", 2),
        [
            ("log.retention.ms", "1000", 2),
            ("log.retention.ms", "2000", 3),
            ("log.retention.hours", "168", 4),
            ("log.retention.hours", "168", 5),
        ],
    )
    own = by_name(
        describe_topic(server, {"segment.ms": "5000", "cleanup.policy": "delete, compact"})
    )
    assert told(own["segment.ms"]) == (
        *("5000", 1),
        [("segment.ms", "5000", 1), ("log.roll.ms", " 3000 ", 3), ("log.roll.hours", "168", 5)],
    )
    assert told(own["cleanup.policy"]) == (
        *("delete,compact", 1),
        [("cleanup.policy", "delete,compact", 1), ("log.cleanup.policy", "delete", 5)],
    )
    assert inherited["segment.bytes"] == own["segment.bytes"]
    assert not any(entry.read_only or entry.is_sensitive for entry in own.values())


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ({"log.retention.hours": "1"}, "retention.ms", "3600000"),
        ({"log.retention.minutes": "-1"}, "retention.ms", "-1"),
        ({"log.roll.hours": "1"}, "segment.ms", "3600000"),
        ({"log.flush.scheduler.interval.ms": "5"}, "flush.ms", "5"),
    ],
)
def test_a_value_in_another_unit_has_no_synonym(
    settings: dict[str, str], name: str, value: str
) -> None:
    """Kafka looks for synonyms under the finest name only, and calls the rest a default."""
    assert told(by_name(describe_topic(load(None, settings), {}))[name]) == (value, 5, [])


def test_stored_configs_that_no_table_has_are_taken_for_secrets(server: ServerConfig) -> None:
    overrides = {"from.the.future": SECRET, "internal.segment.bytes": "100"}
    first, second, *_ = describe_topic(server, overrides)
    assert told(first) == (None, 1, [("from.the.future", None, 1)])
    assert first.is_sensitive
    assert told(second) == ("100", 1, [("internal.segment.bytes", "100", 1)])


def test_a_stored_config_that_does_not_parse_is_refused(server: ServerConfig) -> None:
    assert refusal(describe_topic, server, {"segment.ms": "soon"}) is not None


def test_group_configs() -> None:
    server = load(None, {"group.consumer.session.timeout.ms": "46000"})
    inherited = by_name(describe_group(server, {}))
    assert told(inherited["consumer.session.timeout.ms"]) == (
        *("46000", 4),
        [
            ("group.consumer.session.timeout.ms", "46000", 4),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ],
    )
    assert told(inherited["share.auto.offset.reset"]) == (
        *("latest", 5),
        [("share.auto.offset.reset", "latest", 5)],
    )
    own = by_name(describe_group(server, {"share.auto.offset.reset": "earliest"}))
    assert told(own["share.auto.offset.reset"]) == (
        *("earliest", 8),
        [("share.auto.offset.reset", "earliest", 8), ("share.auto.offset.reset", "latest", 5)],
    )
    assert not inherited["consumer.session.timeout.ms"].read_only


def test_client_metrics_configs() -> None:
    assert [told(entry) for entry in describe_client_metrics({})] == [
        ("300000", 5, []),
        ("", 5, []),
        ("", 5, []),
    ]
    own = by_name(describe_client_metrics({"metrics": "a, b"}))
    assert told(own["metrics"]) == ("a,b", 7, [("metrics", "a,b", 7)])


def test_no_secret_is_in_any_entry() -> None:
    secrets = {
        name: SECRET
        for name, definition in tables.broker_definitions().items()
        if definition.is_sensitive
    }
    started = load(None, {**secrets, "rsm.config.key": SECRET})
    for server in (started, load(None, {}).with_dynamic(secrets, BROKER_SETTINGS)):
        assert SECRET not in repr(describe_broker(server))
        assert SECRET not in repr(describe_broker_defaults(server))
    assert by_name(describe_broker(started))["ssl.key.password"].config_source is STATIC


# --- CreateTopics ---


def test_effective_configs_are_sorted_and_kafkas(server: ServerConfig) -> None:
    entries = effective_topic_configs(server, {})
    names = [entry.name for entry in entries]
    assert names == sorted(names)
    assert len(names) == 33
    assert "flush.before.ack" not in names
    assert "internal.segment.bytes" not in names


def test_effective_configs_of_klamm_are_listed_where_they_are_set() -> None:
    assert "flush.before.ack" in by_name(
        effective_topic_configs(load(None, {}), {"flush.before.ack": "true"})
    )
    of_broker = by_name(effective_topic_configs(load(None, {"flush.before.ack": "false"}), {}))
    assert (of_broker["flush.before.ack"].value, of_broker["flush.before.ack"].config_source) == (
        "false",
        STATIC,
    )


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("compression.type", "gzip", CLUSTER),
        ("max.message.bytes", "2000000", BROKER),
        ("retention.ms", "1000", BROKER),
        ("segment.bytes", "1073741824", STATIC),
        ("segment.ms", " 3000 ", CLUSTER),
        ("segment.jitter.ms", "0", DEFAULT),
        ("preallocate", "TRUE", TOPIC),
        ("retention.bytes", " 1000 ", TOPIC),
        ("internal.segment.bytes", "100000", TOPIC),
    ],
)
def test_effective_values_stay_as_they_were_written(
    server: ServerConfig, name: str, value: str, source: ConfigSource
) -> None:
    overrides = {
        "preallocate": "TRUE",
        "retention.bytes": " 1000 ",
        "internal.segment.bytes": "100000",
    }
    entry = by_name(effective_topic_configs(server, overrides))[name]
    assert (entry.value, entry.config_source) == (value, source)
    assert (entry.read_only, entry.is_sensitive) == (False, False)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({"log.retention.hours": "168"}, "604800000"),
        ({"log.retention.hours": "168", "log.retention.minutes": "1"}, "60000"),
        ({"log.retention.ms": "7", "log.retention.minutes": "1"}, "7"),
    ],
)
def test_effective_values_in_another_unit_are_the_brokers(
    settings: dict[str, str], value: str
) -> None:
    entry = by_name(effective_topic_configs(load(None, settings), {}))["retention.ms"]
    assert (entry.value, entry.config_source) == (value, STATIC)


# --- order and loggers ---


def test_the_order_is_that_of_a_hash_map() -> None:
    """As the client metrics and group configs of Kafka 4.3.1 came; a tie keeps its order."""
    assert hash_map_order(["metrics", "interval.ms", "match"]) == [
        "interval.ms",
        "match",
        "metrics",
    ]
    assert hash_map_order(tables.group_definitions())[:3] == [
        "consumer.session.timeout.ms",
        "consumer.assignment.interval.ms",
        "share.auto.offset.reset",
    ]
    assert hash_map_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert hash_map_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert hash_map_order([]) == []
    assert set(hash_map_order(tables.broker_definitions())) == tables.broker_definitions().keys()


def test_kafkas_settings_come_in_kafkas_order_and_klamms_own_after_them(
    server: ServerConfig,
) -> None:
    names = [entry.name for entry in describe_topic(server, {})]
    assert names[:3] == [
        "compression.type",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
    ]
    assert names[-1] == "flush.before.ack"
    assert [entry.name for entry in describe_broker(load(None, {}))[:3]] == [
        "log.cleaner.min.compaction.lag.ms",
        "offsets.topic.num.partitions",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    ]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (logging.CRITICAL, "FATAL"),
        (logging.ERROR, "ERROR"),
        (logging.WARNING, "WARN"),
        (logging.INFO, "INFO"),
        (logging.DEBUG, "DEBUG"),
        (5, "TRACE"),
    ],
)
def test_loggers_have_kafkas_levels(level: int, shown: str) -> None:
    logger = logging.getLogger("klamm.broker.tests.levels")
    logger.setLevel(level)
    entries = by_name(describe_loggers())
    assert entries["klamm.broker.tests.levels"].value == shown
    assert entries["klamm.broker.tests.levels"].config_source == 6
    assert entries["root"].documentation == ""
    assert all(name == "root" or name.split(".")[0] == "klamm" for name in entries)


def test_a_logger_without_a_level_has_that_of_its_parent() -> None:
    logging.getLogger("klamm.broker.tests.parent").setLevel(logging.ERROR)
    logging.getLogger("klamm.broker.tests.parent.child")
    assert by_name(describe_loggers())["klamm.broker.tests.parent.child"].value == "ERROR"

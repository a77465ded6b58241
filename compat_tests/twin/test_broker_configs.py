"""Settings of brokers at run time: which may change, what they are then, and who follows them.

What is only validated goes to the brokers of the session; what is changed, to a pair of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from compat_tests.twin.alterations import (
    APPEND,
    BROKER,
    DELETE,
    NODE_ID,
    SET,
    SUBTRACT,
    TOPIC,
    Change,
    alter,
    describe,
    one,
    replace,
    wait_until_set,
)
from compat_tests.twin.brokers import pair_of_brokers
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

API = "incremental_alter_configs"

# Settings with a value each, tried for the broker and for all brokers.
VALUES = [
    ("node.id", "2"),
    ("log.dirs", "/elsewhere"),
    ("log.cleaner.enable", "false"),
    ("log.retention.minutes", "7"),
    ("log.roll.hours", "7"),
    ("log.retention.check.interval.ms", "5"),
    ("num.partitions", "5"),
    ("auto.create.topics.enable", "false"),
    ("group.consumer.session.timeout.ms", "50000"),
    ("no.such.setting", "x"),
    ("", "x"),
    ("rsm.config.key", "value"),
    ("log.retention.ms", "x"),
    ("log.retention.ms", "0"),
    ("log.retention.ms", "-1"),
    ("log.retention.ms", "-2"),
    ("log.retention.ms", "5000"),
    ("log.retention.bytes", "-1"),
    ("log.roll.ms", "0"),
    ("log.roll.jitter.ms", "-1"),
    ("log.segment.bytes", "1048575"),
    ("log.segment.bytes", "1048576"),
    ("log.segment.delete.delay.ms", "-1"),
    ("log.index.size.max.bytes", "3"),
    ("log.flush.interval.messages", "0"),
    ("log.flush.interval.ms", "0"),
    ("log.cleanup.policy", "compact,delete"),
    ("log.cleanup.policy", "none"),
    ("log.cleanup.policy", ""),
    ("log.message.timestamp.type", "LogAppendTime"),
    ("log.message.timestamp.type", "never"),
    ("log.preallocate", "true"),
    ("log.local.retention.ms", "5"),
    ("log.local.retention.ms", "-1"),
    ("log.local.retention.ms", "604800001"),
    ("log.local.retention.bytes", "5"),
    ("log.cleaner.threads", "0"),
    ("log.cleaner.threads", "2"),
    ("log.cleaner.threads", "3"),
    ("log.cleaner.dedupe.buffer.size", "5"),
    ("log.cleaner.dedupe.buffer.size", "1048577"),
    ("log.cleaner.io.max.bytes.per.second", "1000"),
    ("log.cleaner.io.buffer.size", "0"),
    ("log.cleaner.io.buffer.load.factor", "0.5"),
    ("log.cleaner.backoff.ms", "-1"),
    ("log.cleaner.backoff.ms", "100"),
    ("log.cleaner.min.cleanable.ratio", "1.1"),
    ("log.cleaner.delete.retention.ms", "-1"),
    ("log.cleaner.min.compaction.lag.ms", "5"),
    ("log.cleaner.max.compaction.lag.ms", "0"),
    ("compression.type", "zip"),
    ("compression.type", "gzip"),
    ("compression.zstd.level", "100"),
    ("message.max.bytes", "-1"),
    ("message.max.bytes", "2000000"),
    ("unclean.leader.election.enable", "true"),
    ("min.insync.replicas", "0"),
    ("min.insync.replicas", "2"),
    ("max.connections", "0"),
    ("max.connections", "-1"),
    ("max.connections", "100"),
    ("max.connections.per.ip", "0"),
    ("max.connections.per.ip", "100"),
    ("max.connections.per.ip.overrides", "127.0.0.1:100"),
    ("max.connections.per.ip.overrides", "127.0.0.1"),
    ("max.connection.creation.rate", "-1"),
    ("max.connection.creation.rate", "100"),
    ("num.io.threads", "0"),
    ("num.io.threads", "3"),
    ("num.io.threads", "4"),
    ("num.io.threads", "16"),
    ("num.io.threads", "17"),
    ("num.network.threads", "1"),
    ("num.network.threads", "7"),
    ("background.threads", "4"),
    ("num.replica.fetchers", "3"),
    ("num.recovery.threads.per.data.dir", "3"),
    ("remote.log.reader.threads", "21"),
    ("remote.log.manager.copier.thread.pool.size", "4"),
    ("remote.log.index.file.cache.total.size.bytes", "0"),
    ("remote.fetch.max.wait.ms", "100"),
    ("producer.id.expiration.ms", "0"),
    ("producer.id.expiration.ms", "5000"),
    ("transaction.partition.verification.enable", "false"),
    ("group.consumer.assignment.interval.ms", "15001"),
    ("group.consumer.assignment.interval.ms", "15000"),
    ("group.coordinator.cached.buffer.max.bytes", "1"),
    ("group.coordinator.cached.buffer.max.bytes", "2000000"),
    ("leader.replication.throttled.rate", "5"),
    ("leader.replication.throttled.rate", "-5"),
    ("follower.replication.throttled.rate", "x"),
    ("ssl.keystore.type", "JKS"),
    ("ssl.truststore.location", "/nowhere"),
    ("ssl.client.auth", "required"),
    ("ssl.client.auth", "perhaps"),
    ("ssl.cipher.suites", "a,b"),
    ("sasl.enabled.mechanisms", "PLAIN"),
    ("sasl.kerberos.min.time.before.relogin", "x"),
    ("listener.name.plaintext.ssl.keystore.type", "JKS"),
    ("listener.name.plaintext.ssl.keystore.password", "secret"),
    ("listener.name.nowhere.ssl.truststore.type", "JKS"),
    ("listener.name.plaintext.sasl.enabled.mechanisms", "PLAIN"),
    ("listener.name.plaintext.no.such.setting", "x"),
]


@pytest.mark.parametrize("name", [NODE_ID, ""], ids=["one", "all"])
@pytest.mark.parametrize("part", range(4))
def test_what_may_be_set(talk: Conversation, name: str, part: int) -> None:
    with all_cases() as cases:
        for config, value in VALUES[part::4]:
            with cases.case(f"{config}={value}"):
                talk.ask(API, 1, alter(one(BROKER, name, config, value), validate_only=True))


@pytest.mark.every_version(API)
@pytest.mark.parametrize("name", [NODE_ID, ""], ids=["one", "all"])
def test_every_version(talk: Conversation, version: int, name: str) -> None:
    with all_cases() as cases:
        for config, value in VALUES[::12]:
            with cases.case(f"{config}={value}"):
                body = alter(one(BROKER, name, config, value), validate_only=True)
                talk.ask(API, version, body)


@pytest.mark.every_version("alter_configs")
def test_every_version_of_alter_configs(talk: Conversation, version: int) -> None:
    with all_cases() as cases:
        for config, value in VALUES[5::12]:
            with cases.case(f"{config}={value}"):
                body = replace(one(BROKER, NODE_ID, config, value), validate_only=True)
                talk.ask("alter_configs", version, body)


CHANGES: Sequence[Sequence[Change]] = [
    [("log.cleanup.policy", APPEND, "compact")],
    [("log.cleanup.policy", APPEND, "")],
    [("log.cleanup.policy", APPEND, "none")],
    [("log.cleanup.policy", SUBTRACT, "delete")],
    [("log.retention.ms", APPEND, "5")],
    [("log.retention.ms", SUBTRACT, "5")],
    [("no.such.setting", APPEND, "5")],
    [("node.id", APPEND, "5")],
    [("leader.replication.throttled.rate", APPEND, "5")],
    [("log.retention.ms", DELETE, None)],
    [("node.id", DELETE, None)],
    [("no.such.setting", DELETE, None)],
    [("min.insync.replicas", DELETE, None)],
    [("log.retention.ms", SET, "5"), ("log.roll.ms", SET, "x")],
    [
        ("max.connections.per.ip", SET, "0"),
        ("max.connections.per.ip.overrides", SET, "127.0.0.1:100"),
    ],
]


@pytest.mark.every_version(API)
def test_operations_and_combinations(talk: Conversation, version: int) -> None:
    with all_cases() as cases:
        for changes in CHANGES:
            for name in (NODE_ID, ""):
                with cases.case(f"{changes} for {name!r}"):
                    body = alter((BROKER, name, changes), validate_only=True)
                    talk.ask(API, version, body)


@pytest.mark.every_version(API)
def test_names_of_brokers(talk: Conversation, version: int) -> None:
    for name in ("01", "+1", "2", "-1", "x", " 1", "99999999999", "1.0"):
        body = alter(one(BROKER, name, "log.retention.ms", "5000"), validate_only=True)
        talk.ask(API, version, body)


@pytest.mark.every_version(API)
def test_what_klamm_cannot_honour(talk: Conversation, version: int) -> None:
    """It is refused at run time as it is at the start."""
    for config, value in (
        ("config.providers", "file"),
        ("listener.name.plaintext.max.connections", "5"),
        ("message.max.bytes", "104857601"),
    ):
        body = alter(one(BROKER, NODE_ID, config, value), validate_only=True)
        talk.ask(API, version, body, deviation="D-054")


@pytest.mark.every_version(API)
def test_classes_are_not_looked_for(talk: Conversation, version: int) -> None:
    body = alter(one(BROKER, NODE_ID, "metric.reporters", "no.such.Class"), validate_only=True)
    talk.ask(API, version, body, deviation="D-055")


@pytest.mark.every_version(API)
def test_bounds_that_contradict_each_other(talk: Conversation, version: int) -> None:
    """In one resource, or in two that count together."""
    low: Change = ("log.cleaner.min.compaction.lag.ms", SET, "6")
    high: Change = ("log.cleaner.max.compaction.lag.ms", SET, "5")
    for resources in (
        [(BROKER, "", [low, high])],
        [(BROKER, NODE_ID, [low, high])],
        [(BROKER, "", [low]), (BROKER, NODE_ID, [high])],
    ):
        talk.ask(API, version, alter(*resources, validate_only=True), deviation="D-056")


# --- what is changed ---


@pytest.fixture(scope="module")
def pair(kafka_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """Brokers whose settings may be changed."""
    settings = {"log.retention.hours": "100", "log.cleaner.backoff.ms": "20000"}
    with pair_of_brokers(tmp_path_factory.mktemp("broker-configs"), settings) as twin:
        yield twin


FOLLOWED = [
    # (setting, its value for all brokers, for this broker, the config of a topic that follows)
    ("log.retention.ms", "5000000", "6000000", "retention.ms"),
    ("log.segment.bytes", "2000000", "3000000", "segment.bytes"),
    ("log.cleanup.policy", "compact", "compact,delete", "cleanup.policy"),
    ("message.max.bytes", "2000000", "3000000", "max.message.bytes"),
    ("compression.type", "gzip", "lz4", "compression.type"),
    ("log.roll.ms", "100000", "200000", "segment.ms"),
    ("log.flush.interval.ms", "100000", "200000", "flush.ms"),
    ("log.cleaner.min.cleanable.ratio", "0.25", "0.75", "min.cleanable.dirty.ratio"),
    ("log.message.timestamp.after.max.ms", "7200000", "1800000", "message.timestamp.after.max.ms"),
]


@pytest.mark.parametrize(("config", "of_all", "of_one", "of_topic"), FOLLOWED)
def test_layers_and_topics_that_follow(
    pair: Twin, config: str, of_all: str, of_one: str, of_topic: str
) -> None:
    """Of this broker before that of all brokers, before the file, before the default."""
    topic, own = pair.create_topic(), pair.create_topic(configs={"segment.bytes": "5000000"})
    asked = [(BROKER, NODE_ID, config), (BROKER, "", config)]
    asked += [(TOPIC, topic, of_topic), (TOPIC, own, of_topic)]
    described = describe(*asked[0])
    described["resources"] = [describe(*each)["resources"][0] for each in asked]
    before = pair.control.ask("describe_configs", 4, described)
    initial = before.kafka["results"][0]["configs"][0]["value"]
    for name, value, operation, counts in (
        ("", of_all, SET, of_all),
        (NODE_ID, of_one, SET, of_one),
        (NODE_ID, None, DELETE, of_all),
        ("", None, DELETE, initial),
    ):
        pair.control.ask(API, 1, alter(one(BROKER, name, config, value, operation)))
        wait_until_set(pair, BROKER, NODE_ID, config, counts)
        pair.control.ask("describe_configs", 4, described)


OTHERS = [
    ("log.cleaner.backoff.ms", "30000"),
    ("log.cleaner.io.max.bytes.per.second", "1e6"),
    ("producer.id.expiration.ms", "5000000"),
    ("group.consumer.assignment.interval.ms", "2000"),
    ("leader.replication.throttled.rate", "1000"),
    ("no.such.setting", "anything"),
    ("listener.name.plaintext.ssl.keystore.type", "JKS"),
    ("listener.name.plaintext.ssl.keystore.password", "secret"),
]


def test_how_settings_are_shown(pair: Twin) -> None:
    """Also hidden, unknown and secret ones."""
    control = pair.control
    names = [config for config, _ in OTHERS]
    changes = [(config, SET, value) for config, value in OTHERS]
    control.ask(API, 1, alter((BROKER, NODE_ID, changes)))
    wait_until_set(pair, BROKER, NODE_ID, "log.cleaner.backoff.ms", "30000")
    control.ask("describe_configs", 4, describe(BROKER, NODE_ID, *names))
    control.ask(API, 1, alter((BROKER, NODE_ID, [(name, DELETE, None) for name in names])))
    # A value that is shown: that of an unknown setting is not.
    wait_until_set(pair, BROKER, NODE_ID, "producer.id.expiration.ms", "86400000")
    control.ask("describe_configs", 4, describe(BROKER, NODE_ID, *names))


def test_all_brokers_at_once_and_replaced(pair: Twin) -> None:
    control = pair.control
    both = [("min.insync.replicas", SET, "2"), ("log.roll.ms", SET, "1000000")]
    control.ask("alter_configs", 2, replace((BROKER, "", both)))
    wait_until_set(pair, BROKER, "", "log.roll.ms", "1000000")
    control.ask("describe_configs", 4, describe(BROKER, ""))
    control.ask("describe_configs", 4, describe(BROKER, NODE_ID, "min.insync.replicas"))
    control.ask("alter_configs", 2, replace(one(BROKER, "", "min.insync.replicas", "1")))
    wait_until_set(pair, BROKER, "", "log.roll.ms", None)
    control.ask("describe_configs", 4, describe(BROKER, ""))


def test_another_way_to_write_the_id(pair: Twin) -> None:
    """It is another resource, and nobody follows it."""
    control = pair.control
    control.ask(API, 1, alter(one(BROKER, "01", "log.roll.ms", "12345")))
    control.ask(API, 1, alter(one(BROKER, NODE_ID, "log.retention.ms", "7000000")))
    wait_until_set(pair, BROKER, NODE_ID, "log.retention.ms", "7000000")
    for name in (NODE_ID, "01"):
        control.ask("describe_configs", 4, describe(BROKER, name, "log.roll.ms"))
    control.ask(API, 1, alter(one(BROKER, "01", "log.roll.ms", None, DELETE)))
    control.ask(API, 1, alter(one(BROKER, NODE_ID, "log.retention.ms", None, DELETE)))


def test_new_topics_have_the_new_defaults(pair: Twin) -> None:
    control = pair.control
    control.ask(API, 1, alter(one(BROKER, "", "log.retention.ms", "8000000")))
    wait_until_set(pair, BROKER, NODE_ID, "log.retention.ms", "8000000")
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1}
    control.ask("create_topics", 7, {"topics": [topic], "timeout": 10_000})
    pair.wait_until_led("new")
    control.ask("describe_configs", 4, describe(TOPIC, "new", "retention.ms"))
    control.ask(API, 1, alter(one(BROKER, "", "log.retention.ms", None, DELETE)))


def test_listeners(pair: Twin) -> None:
    """What they are already may be said again; Kafka can open one more that is not advertised."""
    asked = describe(BROKER, NODE_ID, "listeners", "listener.security.protocol.map")
    described = pair.control.ask("describe_configs", 4, asked, compare=False)
    bodies: dict[str, Plain] = {}
    more: dict[str, Plain] = {}
    for side in pair.sides:
        now = {one["name"]: one["value"] for one in described[side]["results"][0]["configs"]}
        bodies[side.name] = alter(
            (BROKER, NODE_ID, [(name, SET, value) for name, value in now.items()]),
            validate_only=True,
        )
        now["listeners"] += ",MORE://127.0.0.1:0"
        now["listener.security.protocol.map"] += ",MORE:PLAINTEXT"
        more[side.name] = alter(
            (BROKER, NODE_ID, [(name, SET, value) for name, value in now.items()]),
            validate_only=True,
        )
    pair.control.ask(API, 1, lambda side: bodies[side.name])
    pair.control.ask(API, 1, lambda side: more[side.name], deviation="D-057")

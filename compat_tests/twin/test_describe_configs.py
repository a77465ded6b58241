"""DescribeConfigs: every setting of every kind of resource, with its value, source and type.

Both brokers of the session have the lines of Kafka's own server.properties. A second pair has
unusual ones, to see how values are read, converted and printed. Texts of the documentation are
each broker's own; that there is one must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from compat_tests.twin.brokers import pair_of_brokers
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Pair
from compat_tests.twin.may_differ import both_or_neither
from compat_tests.twin.topics import Twin

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
STATIC = 4
NODE_ID = "1"

# Where each broker was put: the same settings with other values.
PLACES = {
    "advertised.listeners",
    "controller.quorum.bootstrap.servers",
    "listeners",
    "log.dirs",
}
# D-101: a default of klamm's own, seen as the value or among the synonyms.
OWN_DEFAULTS = [
    "broker.id",
    "controller.listener.names",
    "group.consumer.max.size",
    "group.initial.rebalance.delay.ms",
    "group.max.size",
    "listeners",
    "log.dir",
    "max.connections",
    "max.connections.per.ip",
    "node.id",
    "offsets.topic.replication.factor",
    "process.roles",
    "queued.max.request.bytes",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "socket.receive.buffer.bytes",
    "socket.request.max.bytes",
    "socket.send.buffer.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
]
# D-102: settings that only klamm has.
KLAMM_ONLY = [
    "flush.before.ack",
    "klamm.decompressed.bytes.max",
    "klamm.request.items.max",
    "klamm.request.progress.timeout.ms",
    "klamm.response.progress.timeout.ms",
    "klamm.worker.threads",
]

# Set for Kafka alone (see compat_tests/conftest.py), which shows it as it does names it never saw.
KAFKA_ONLY = "group.consumer.assignor.offload.enable"

# What each way of writing a value becomes, and what a topic and a group make of it.
UNUSUAL = {
    "node.id": "7",
    "broker.rack": "rack 1",
    "compression.type": "gzip",
    "group.consumer.session.timeout.ms": "50000",
    "listener.name.plaintext.ssl.keystore.password": "secret",
    "listener.name.plaintext.ssl.keystore.type": "PKCS12",
    "log.cleaner.io.max.bytes.per.second": "12500000",
    "log.cleaner.min.cleanable.ratio": "1",
    "log.cleanup.policy": "compact , delete",
    "log.flush.scheduler.interval.ms": "5000",
    "log.initial.task.delay.ms": "1000",
    "log.preallocate": "True",
    "log.retention.minutes": "10",
    "log.roll.hours": "1",
    "log.roll.jitter.hours": "1",
    "log.roll.ms": "60000",
    "message.max.bytes": "2000000",
    "min.insync.replicas": "2",
    "rsm.config.key": "value",
    "ssl.key.password": "secret",
    "unclean.leader.election.enable": "TRUE",
}

Resource = tuple[int, str, Sequence[str] | None]

RULES = {"results[].configs[].documentation": both_or_neither}


def describe(*resources: Resource, synonyms: bool = True, documentation: bool = True) -> Plain:
    return {
        "resources": [
            {
                "resource_type": kind,
                "resource_name": name,
                "configuration_keys": None if keys is None else list(keys),
            }
            for kind, name, keys in resources
        ],
        "include_synonyms": synonyms,
        "include_documentation": documentation,
    }


def without(*names: str, places: set[str] = PLACES) -> Any:
    """Leaves settings out of a reply, and the values that say where a broker was put."""

    def prepare(reply: Plain) -> Plain:
        return {**reply, "results": [_result(result) for result in reply["results"]]}

    def _result(result: Plain) -> Plain:
        left_out = {KAFKA_ONLY, *names}
        entries = [entry for entry in result["configs"] if entry["name"] not in left_out]
        return {**result, "configs": [_entry(entry) for entry in entries]}

    def _entry(entry: Plain) -> Plain:
        if entry["name"] not in places:
            return entry
        synonyms = [
            {**one, "value": "(a place)"} if one["source"] == STATIC else one
            for one in entry["synonyms"]
        ]
        return {**entry, "value": "(a place)", "synonyms": synonyms}

    return prepare


def names_of(reply: Plain) -> list[str]:
    names = [entry["name"] for entry in reply["results"][0]["configs"]]
    return [name for name in names if name != KAFKA_ONLY]


def assert_same_order(pair: Pair) -> None:
    """Kafka's settings come in Kafka's order, which is that of a hash map, and klamm's own last."""
    kafkas, others = names_of(pair.kafka), names_of(pair.other)
    assert others[: len(kafkas)] == kafkas


@pytest.fixture(scope="module")
def unusual(kafka_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """A pair of brokers that were both started with the unusual settings."""
    with pair_of_brokers(tmp_path_factory.mktemp("unusual"), UNUSUAL) as pair:
        yield pair


# --- topics ---


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("synonyms", [False, True])
@pytest.mark.parametrize("documentation", [False, True])
def test_a_topic(
    twin: Twin, talk: Conversation, version: int, synonyms: bool, documentation: bool
) -> None:
    configs = {
        "cleanup.policy": "delete, compact",
        "min.cleanable.dirty.ratio": "1",
        "preallocate": "TRUE",
        "retention.bytes": " 1000 ",
        "retention.ms": "-1",
    }
    for name in (twin.create_topic(), twin.create_topic(configs=configs)):
        body = describe((TOPIC, name, None), synonyms=synonyms, documentation=documentation)
        pair = talk.ask(
            *("describe_configs", version, body), rules=RULES, prepare=without(*KLAMM_ONLY)
        )
        assert_same_order(pair)


def test_a_hidden_topic_config_is_listed_where_it_is_set(twin: Twin, talk: Conversation) -> None:
    name = twin.create_topic(configs={"internal.segment.bytes": "100000"})
    pair = talk.ask(
        *("describe_configs", 4, describe((TOPIC, name, None))),
        rules=RULES,
        prepare=without(*KLAMM_ONLY),
    )
    assert_same_order(pair)
    assert names_of(pair.other)[0] == "internal.segment.bytes"


@pytest.mark.every_version("describe_configs")
def test_topic_names_that_cannot_be(twin: Twin, talk: Conversation, version: int) -> None:
    for name in (
        *("", ".", "..", "a b", "a/b", "ä", "x" * 249, "x" * 250, "__cluster_metadata"),
        twin.unused_name("unknown"),
    ):
        talk.ask("describe_configs", version, describe((TOPIC, name, None)))


def test_the_topic_of_offsets(coordinated: Twin, talk: Conversation) -> None:
    body = describe((TOPIC, "__consumer_offsets", None))
    pair = talk.ask("describe_configs", 4, body, rules=RULES, prepare=without(*KLAMM_ONLY))
    assert_same_order(pair)


def test_a_deleted_topic_has_no_configs(twin: Twin, talk: Conversation) -> None:
    name = twin.create_topic(configs={"retention.ms": "5"})
    talk.ask("delete_topics", 5, {"topic_names": [name], "timeout": 10_000})
    twin.wait_until_gone(name)
    talk.ask("describe_configs", 4, describe((TOPIC, name, None)))


# --- brokers ---


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("synonyms", [False, True])
@pytest.mark.parametrize("documentation", [False, True])
def test_a_broker(talk: Conversation, version: int, synonyms: bool, documentation: bool) -> None:
    body = describe((BROKER, NODE_ID, None), synonyms=synonyms, documentation=documentation)
    pair = talk.ask(
        *("describe_configs", version, body),
        rules=RULES,
        prepare=without(*OWN_DEFAULTS, *KLAMM_ONLY),
    )
    assert_same_order(pair)
    assert len(names_of(pair.kafka)) == 340


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("name", OWN_DEFAULTS)
def test_a_default_of_klamms_own(talk: Conversation, version: int, name: str) -> None:
    talk.ask(
        *("describe_configs", version, describe((BROKER, NODE_ID, [name]))),
        rules=RULES,
        prepare=without(),
        deviation="D-101",
    )


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("name", KLAMM_ONLY)
def test_a_setting_that_only_klamm_has(talk: Conversation, version: int, name: str) -> None:
    body = describe((BROKER, NODE_ID, [name]))
    pair = talk.ask("describe_configs", version, body, deviation="D-102")
    assert names_of(pair.kafka) == []


def test_a_topic_config_that_only_klamm_has(twin: Twin, talk: Conversation) -> None:
    body = describe((TOPIC, twin.create_topic(), ["flush.before.ack"]))
    talk.ask("describe_configs", 4, body, deviation="D-102")


@pytest.mark.every_version("describe_configs")
def test_what_is_set_for_all_brokers(talk: Conversation, version: int) -> None:
    """A new cluster of Kafka 4.3 fixes min.insync.replicas (KIP-966), and nothing else."""
    for keys in (None, [], ["min.insync.replicas"], ["num.partitions"]):
        talk.ask("describe_configs", version, describe((BROKER, "", keys)), rules=RULES)


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("kind", [BROKER, BROKER_LOGGER])
def test_broker_ids(talk: Conversation, version: int, kind: int) -> None:
    """Ids are read as Java reads numbers: with a sign, leading zeros and any script's digits."""
    for name in (
        *("1", "01", "+1", "\N{ARABIC-INDIC DIGIT ONE}"),
        *("0", "2", "-1", "-", "+", "x", " 1", "1 ", "1.0", "1_0", "0x1", "99999999999", "1" * 99),
    ):
        talk.ask("describe_configs", version, describe((kind, name, ["no.such.name"])))


# --- loggers, client metrics, groups ---


@pytest.mark.every_version("describe_configs")
def test_loggers(talk: Conversation, version: int) -> None:
    for name, keys in (("", None), (NODE_ID, ["root"]), (NODE_ID, ["no.such.logger"])):
        talk.ask("describe_configs", version, describe((BROKER_LOGGER, name, keys)))


@pytest.mark.every_version("describe_configs")
def test_loggers_are_each_brokers_own(twin: Twin, talk: Conversation, version: int) -> None:
    """Their names are those of classes in Kafka, some of which are only loaded when needed."""
    body = describe((BROKER_LOGGER, NODE_ID, None))
    pair = talk.ask("describe_configs", version, body, compare=False)
    if not twin.same_broker:
        pair = talk.ask("describe_configs", version, body, deviation="D-103")
    shapes = {
        tuple(value for key, value in entry.items() if key not in ("name", "value", "synonyms"))
        for reply in (pair.kafka, pair.other)
        for entry in reply["results"][0]["configs"]
    }
    assert len(shapes) == 1


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("kind", [CLIENT_METRICS, GROUP])
@pytest.mark.parametrize("synonyms", [False, True])
def test_groups_and_client_metrics(
    talk: Conversation, version: int, kind: int, synonyms: bool
) -> None:
    """They need not exist: what would hold for them is told."""
    for name in ("", "never heard of", "a b/ä", "x" * 1000):
        body = describe((kind, name, None), synonyms=synonyms)
        assert_same_order(talk.ask("describe_configs", version, body, rules=RULES))


# --- requests ---


@pytest.mark.every_version("describe_configs")
def test_filters(twin: Twin, talk: Conversation, version: int) -> None:
    name = twin.create_topic(configs={"retention.ms": "5"})
    for keys in (
        ["retention.ms"],
        ["segment.ms", "cleanup.policy", "retention.ms"],
        ["retention.ms", "retention.ms"],
        ["no.such.config"],
        ["retention.ms", "no.such.config", ""],
        ["RETENTION.MS"],
        ["log.retention.ms"],
        ["internal.segment.bytes"],
    ):
        pair = talk.ask("describe_configs", version, describe((TOPIC, name, keys)), rules=RULES)
        assert_same_order(pair)
    all_keys: tuple[list[str] | None, ...] = ([], None)
    for everything in all_keys:
        talk.ask(
            *("describe_configs", version, describe((TOPIC, name, everything))),
            rules=RULES,
            prepare=without(*KLAMM_ONLY),
        )


@pytest.mark.every_version("describe_configs")
@pytest.mark.parametrize("kind", [0, 1, 3, 5, 64, 127, -1, -128])
def test_types_that_have_no_settings(
    twin: Twin, talk: Conversation, version: int, kind: int
) -> None:
    """One of them makes the whole request invalid."""
    name = twin.create_topic()
    talk.ask("describe_configs", version, describe((kind, "x", None)))
    good, bad = (TOPIC, name, ["segment.ms"]), (kind, "x", None)
    for resources in ((good, bad), (bad, good), (good, bad, (TOPIC, "unknown", None))):
        talk.ask("describe_configs", version, describe(*resources))


@pytest.mark.every_version("describe_configs")
def test_several_resources(twin: Twin, talk: Conversation, version: int) -> None:
    name = twin.create_topic()
    good = (TOPIC, name, ["segment.ms"])
    talk.ask("describe_configs", version, describe())
    talk.ask(
        *("describe_configs", version),
        describe(
            *(good, (BROKER, "2", None), (TOPIC, "a b", None), good),
            *((TOPIC, name, ["segment.bytes"]), (GROUP, "g", None), (GROUP, "", None)),
            *((BROKER, NODE_ID, ["num.partitions", "default.replication.factor"]),),
        ),
        rules=RULES,
    )


# --- the second pair ---


def test_unusual_settings_of_a_broker(unusual: Twin) -> None:
    with unusual.conversation() as talk:
        talk.ask(
            *("describe_configs", 4, describe((BROKER, "7", None))),
            rules=RULES,
            prepare=without(*OWN_DEFAULTS, *KLAMM_ONLY),
        )
        pair = talk.ask(
            *("describe_configs", 4, describe((BROKER, "7", [*UNUSUAL, "broker.id"]))),
            rules=RULES,
            prepare=without("broker.id", "node.id"),
        )
        # All that was set is shown, except that no secret is.
        assert sorted(names_of(pair.other)) == sorted([*UNUSUAL, "broker.id"])
        assert "secret" not in str(pair.other)
        for name in (NODE_ID, ""):
            talk.ask("describe_configs", 4, describe((BROKER, name, None)), rules=RULES)


def test_unusual_settings_seen_from_a_topic_and_a_group(unusual: Twin) -> None:
    plain = unusual.create_topic()
    own = unusual.create_topic(configs={"retention.ms": "5", "segment.ms": "6", "flush.ms": "7"})
    with unusual.conversation() as talk:
        for name in (plain, own):
            talk.ask(
                *("describe_configs", 4, describe((TOPIC, name, None))),
                rules=RULES,
                prepare=without(*KLAMM_ONLY),
            )
        talk.ask("describe_configs", 4, describe((GROUP, "g", None)), rules=RULES)


def test_unusual_settings_in_the_reply_to_create_topics(unusual: Twin) -> None:
    with unusual.conversation() as talk:
        for configs in ([], [{"name": "retention.ms", "value": " 5"}]):
            topic = {
                "name": unusual.unused_name(),
                "num_partitions": 1,
                "replication_factor": 1,
                "configs": configs,
            }
            talk.ask("create_topics", 7, {"topics": [topic], "timeout": 10_000})

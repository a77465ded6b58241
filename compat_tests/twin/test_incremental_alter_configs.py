"""IncrementalAlterConfigs: the form of requests, topics, groups, client metrics and loggers.

Most is only validated: the checks are the same, and nothing has to be taken back.
"""

from __future__ import annotations

import pytest

from compat_tests.twin.alterations import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    NODE_ID,
    SET,
    SUBTRACT,
    TOPIC,
    Change,
    Resource,
    alter,
    describe,
    one,
    wait_until_set,
)
from compat_tests.twin.cases import all_cases
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

API = "incremental_alter_configs"
NOWHERE = "no-such-topic"
TOO_LONG = "x" * 250


def validate(talk: Conversation, version: int, *resources: Resource) -> None:
    talk.ask(API, version, alter(*resources, validate_only=True))


@pytest.mark.every_version(API)
def test_the_form_of_a_request(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    retention = one(TOPIC, topic, "retention.ms", "5")
    requests: dict[str, list[Resource]] = {
        "nothing": [],
        "no configs": [(TOPIC, topic, [])],
        "a resource twice": [retention, retention],
        "twice and another": [retention, (TOPIC, NOWHERE, []), (TOPIC, topic, [])],
        "three times": [(BROKER, NODE_ID, [])] * 3,
        "a config twice": [(TOPIC, topic, [("a", SET, "1"), ("a", SET, "1")])],
        "set and deleted": [(TOPIC, topic, [("a", SET, "1"), ("a", DELETE, None)])],
        "both twice": [(TOPIC, topic, [("a", SET, "1")] * 2)] * 2,
        "null": [one(TOPIC, topic, "retention.ms", None)],
        "null to append": [one(TOPIC, topic, "cleanup.policy", None, APPEND)],
        "null of a group": [one(GROUP, "group", "consumer.session.timeout.ms", None)],
        "null and a bad type": [one(1, topic, "retention.ms", None)],
        "delete with a value": [one(TOPIC, topic, "retention.ms", "x", DELETE)],
        "types without configs": [(kind, "name", []) for kind in (0, 1, 3, 64, 127, -1)],
        "one good, one bad": [retention, one(TOPIC, NOWHERE, "retention.ms", "5")],
    }
    with all_cases() as cases:
        for name, resources in requests.items():
            with cases.case(name):
                validate(talk, version, *resources)


@pytest.mark.every_version(API)
def test_topics(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    with all_cases() as cases:
        for name in (NOWHERE, "", ".", "..", "!", TOO_LONG, "__cluster_metadata"):
            for changes in TOPIC_CHANGES[:3]:
                with cases.case(f"topic {name} {changes}"):
                    validate(talk, version, (TOPIC, name, changes))
        for changes in TOPIC_CHANGES:
            with cases.case(str(changes)):
                validate(talk, version, (TOPIC, topic, changes))


TOPIC_CHANGES: list[list[Change]] = [
    [],
    [("retention.ms", SET, "x")],
    [("no.such.config", SET, "x")],
    [("no.such.config", DELETE, None)],
    [("no.such.config", APPEND, "x")],
    [("", SET, "")],
    [("retention.ms", APPEND, "5")],
    [("retention.ms", SUBTRACT, "5")],
    [("retention.ms", SET, "-1")],
    [("retention.ms", SET, "-2")],
    [("retention.ms", SET, " 5 ")],
    [("retention.ms", SET, "")],
    [("retention.ms", SET, "9223372036854775808")],
    [("retention.bytes", SET, "-1")],
    [("segment.bytes", SET, "1048575")],
    [("segment.bytes", SET, "1048576")],
    [("segment.bytes", SET, "2147483648")],
    [("segment.ms", SET, "0")],
    [("segment.index.bytes", SET, "3")],
    [("max.message.bytes", SET, "-1")],
    [("max.message.bytes", SET, "0")],
    [("min.insync.replicas", SET, "0")],
    [("min.insync.replicas", SET, "2")],
    [("min.cleanable.dirty.ratio", SET, "1.1")],
    [("min.cleanable.dirty.ratio", SET, "1e0")],
    [("preallocate", SET, "yes")],
    [("preallocate", SET, "TRUE")],
    [("compression.type", SET, "zip")],
    [("compression.type", SET, "zstd")],
    [("compression.gzip.level", SET, "0")],
    [("message.timestamp.type", SET, "createtime")],
    [("message.timestamp.type", SET, "LogAppendTime")],
    [("cleanup.policy", SET, "compact,compact")],
    [("cleanup.policy", SET, "")],
    [("cleanup.policy", SET, "none")],
    [("cleanup.policy", SET, ",")],
    [("cleanup.policy", APPEND, "compact")],
    [("cleanup.policy", APPEND, "")],
    [("cleanup.policy", APPEND, "none")],
    [("cleanup.policy", SUBTRACT, "delete")],
    [("cleanup.policy", SUBTRACT, "none")],
    [("leader.replication.throttled.replicas", APPEND, "0:1")],
    [("leader.replication.throttled.replicas", SET, "*")],
    [("leader.replication.throttled.replicas", SET, "a")],
    [("follower.replication.throttled.replicas", SUBTRACT, "0:1")],
    [("min.compaction.lag.ms", SET, "6"), ("max.compaction.lag.ms", SET, "5")],
    [("min.compaction.lag.ms", SET, "5"), ("max.compaction.lag.ms", SET, "5")],
    [("remote.storage.enable", SET, "true")],
    [("remote.storage.enable", SET, "false")],
    [("remote.log.copy.disable", SET, "true")],
    [("retention.ms", SET, "5"), ("retention.bytes", SET, "x")],
]


@pytest.mark.every_version(API)
def test_operations_on_a_list(twin: Twin, talk: Conversation, version: int) -> None:
    """Duplicates, order, the default as the start, and what is left of nothing."""
    topic = twin.create_topic()
    config = "leader.replication.throttled.replicas"
    for operation, value, shown in (
        (APPEND, "0:1,1:1,0:1", "0:1,1:1"),
        (APPEND, "1:1,2:1", "0:1,1:1,2:1"),
        (SUBTRACT, "1:1,5:1", "0:1,2:1"),
        (SET, "3:1,3:1", "3:1,3:1"),
        (APPEND, "4:1", "3:1,3:1,4:1"),
        (SUBTRACT, "3:1", "3:1,4:1"),
        (SUBTRACT, "3:1,4:1", ""),
        (APPEND, "5:1,", "5:1"),
        (DELETE, None, ""),
    ):
        talk.ask(API, version, alter(one(TOPIC, topic, config, value, operation)))
        wait_until_set(twin, TOPIC, topic, config, shown)
        talk.ask("describe_configs", 4, describe(TOPIC, topic, config))
    policy = one(TOPIC, topic, "cleanup.policy", "compact", APPEND)
    talk.ask(API, version, alter(policy))
    wait_until_set(twin, TOPIC, topic, "cleanup.policy", "delete,compact")


def test_items_that_are_named_twice(twin: Twin, talk: Conversation) -> None:
    """Lists are stored as they come; what they name twice counts once where they have no rule."""
    topic, replicas = twin.create_topic(), "leader.replication.throttled.replicas"
    policy, repeated = "cleanup.policy", "delete, compact,delete"
    talk.ask(API, 1, alter((TOPIC, topic, [(policy, SET, repeated), (replicas, SET, "0:1,0:1")])))
    wait_until_set(twin, TOPIC, topic, replicas, "0:1,0:1")
    talk.ask("describe_configs", 4, describe(TOPIC, topic, policy, replicas))
    talk.ask(API, 1, alter(one(TOPIC, topic, policy, "delete", SUBTRACT)))
    wait_until_set(twin, TOPIC, topic, policy, "compact,delete")
    talk.ask("describe_configs", 4, describe(TOPIC, topic, policy))


@pytest.mark.every_version(API)
def test_a_topic_is_altered_and_described(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(configs={"retention.bytes": "5000000"})
    changes: list[Change] = [
        ("retention.ms", SET, " 12345 "),
        ("segment.bytes", SET, "1048576"),
        ("min.cleanable.dirty.ratio", SET, ".7"),
        ("retention.bytes", DELETE, None),
    ]
    talk.ask(API, version, alter((TOPIC, topic, changes), validate_only=True))
    talk.ask("describe_configs", 4, describe(TOPIC, topic, "retention.ms"))
    refused = (TOPIC, topic, [*changes, ("segment.ms", SET, "0")])
    talk.ask(API, version, alter(refused))
    talk.ask("describe_configs", 4, describe(TOPIC, topic, "retention.ms"))
    talk.ask(API, version, alter((TOPIC, topic, changes), one(TOPIC, NOWHERE, "a", "b")))
    wait_until_set(twin, TOPIC, topic, "retention.ms", "12345")
    names = [name for name, _, _ in changes]
    talk.ask("describe_configs", 4, describe(TOPIC, topic, *names))
    talk.ask(API, version, alter(one(TOPIC, topic, "retention.ms", None, DELETE)))
    wait_until_set(twin, TOPIC, topic, "retention.ms", "604800000")
    talk.ask("describe_configs", 4, describe(TOPIC, topic, *names))


@pytest.mark.every_version(API)
def test_configs_go_with_their_topic(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    talk.ask(API, version, alter(one(TOPIC, topic, "retention.ms", "12345")))
    wait_until_set(twin, TOPIC, topic, "retention.ms", "12345")
    talk.ask("delete_topics", 1, {"topic_names": [topic], "timeout": 10_000})
    twin.wait_until_gone(topic)
    validate(talk, version, one(TOPIC, topic, "retention.ms", "12345"))
    again = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    talk.ask("create_topics", 7, {"topics": [again], "timeout": 10_000})
    twin.wait_until_led(topic)
    talk.ask("describe_configs", 4, describe(TOPIC, topic, "retention.ms"))


GROUP_CHANGES: list[list[Change]] = [
    [],
    [("no.such.config", SET, "x")],
    [("no.such.config", DELETE, None)],
    [("no.such.config", APPEND, "x")],
    [("consumer.session.timeout.ms", APPEND, "50000")],
    [("consumer.session.timeout.ms", SET, "50000")],
    [("consumer.session.timeout.ms", SET, "44999")],
    [("consumer.session.timeout.ms", SET, "60001")],
    [("consumer.session.timeout.ms", SET, "0")],
    [("consumer.session.timeout.ms", SET, "x")],
    [("consumer.heartbeat.interval.ms", SET, "4999")],
    [("consumer.heartbeat.interval.ms", SET, "15000")],
    [("consumer.heartbeat.interval.ms", SET, "15001")],
    [("consumer.assignment.interval.ms", SET, "-1")],
    [("consumer.assignment.interval.ms", SET, "0")],
    [("consumer.assignment.interval.ms", SET, "15001")],
    [("share.session.timeout.ms", SET, "44999")],
    [("share.session.timeout.ms", SET, "60000")],
    [("share.heartbeat.interval.ms", SET, "15001")],
    [("share.record.lock.duration.ms", SET, "999")],
    [("share.record.lock.duration.ms", SET, "14999")],
    [("share.record.lock.duration.ms", SET, "15000")],
    [("share.record.lock.duration.ms", SET, "60001")],
    [("share.delivery.count.limit", SET, "1")],
    [("share.delivery.count.limit", SET, "2")],
    [("share.delivery.count.limit", SET, "11")],
    [("share.partition.max.record.locks", SET, "99")],
    [("share.partition.max.record.locks", SET, "100")],
    [("share.partition.max.record.locks", SET, "10001")],
    [("share.assignment.interval.ms", SET, "15001")],
    [("share.auto.offset.reset", SET, "by_duration:PT1H")],
    [("share.auto.offset.reset", SET, "by_duration:1h")],
    [("share.isolation.level", SET, "read_committed")],
    [("share.isolation.level", SET, "READ_COMMITTED")],
    [("share.renew.acknowledge.enable", SET, "no")],
    [("streams.session.timeout.ms", SET, "60001")],
    [("streams.heartbeat.interval.ms", SET, "4999")],
    [("streams.num.standby.replicas", SET, "2")],
    [("streams.num.standby.replicas", SET, "3")],
    [("streams.initial.rebalance.delay.ms", SET, "100000000")],
    [("streams.initial.rebalance.delay.ms", SET, "-1")],
    [("streams.assignment.interval.ms", SET, "15001")],
]


@pytest.mark.every_version(API)
def test_groups(twin: Twin, talk: Conversation, version: int) -> None:
    with all_cases() as cases:
        for name in ("", "group", " ", "!"):
            with cases.case(f"name {name!r}"):
                validate(talk, version, one(GROUP, name, "consumer.session.timeout.ms", "50000"))
        for changes in GROUP_CHANGES:
            with cases.case(str(changes)):
                validate(talk, version, (GROUP, "group", changes))


METRICS_CHANGES: list[list[Change]] = [
    [],
    [("no.such.config", SET, "x")],
    [("no.such.config", DELETE, None)],
    [("metrics", SET, "*")],
    [("metrics", SET, "")],
    [("metrics", SET, "a, b,a")],
    [("metrics", SET, ",")],
    [("metrics", APPEND, "a")],
    [("metrics", SUBTRACT, "a")],
    [("interval.ms", SET, "99")],
    [("interval.ms", SET, "100")],
    [("interval.ms", SET, "3600000")],
    [("interval.ms", SET, "3600001")],
    [("interval.ms", SET, "x")],
    [("match", SET, "")],
    [("match", SET, "client_id=a.*")],
    [("match", SET, " client_id = b , client_software_name=x")],
    [("match", SET, "client_id")],
    [("match", SET, "client_id=")],
    [("match", SET, "client_id=a=b")],
    [("match", SET, "=a")],
    [("match", SET, "what=a")],
    [("match", SET, "client_id=a,what=b")],
    # Java's own, which RE2 does not take: why D-052 does not look at expressions.
    [("match", SET, "client_id=(?=a)b")],
    [("match", SET, r"client_id=(a)\1")],
    [("match", SET, "client_id=a*+")],
]


@pytest.mark.every_version(API)
def test_client_metrics(talk: Conversation, version: int) -> None:
    with all_cases() as cases:
        for name in ("", "subscription", "!"):
            with cases.case(f"name {name!r}"):
                validate(talk, version, (METRICS, name, []))
        for changes in METRICS_CHANGES:
            with cases.case(str(changes)):
                validate(talk, version, (METRICS, "subscription", changes))


@pytest.mark.every_version(API)
def test_expressions_that_nobody_uses(talk: Conversation, version: int) -> None:
    body = alter(one(METRICS, "subscription", "match", "client_id=["), validate_only=True)
    talk.ask(API, version, body, deviation="D-052")


@pytest.mark.every_version(API)
def test_groups_and_client_metrics_are_stored(twin: Twin, talk: Conversation, version: int) -> None:
    for kind, config, value in (
        (GROUP, "consumer.heartbeat.interval.ms", "6000"),
        (METRICS, "interval.ms", "1234"),
    ):
        name = twin.unused_name("resource")
        before = talk.ask("describe_configs", 4, describe(kind, name, config))
        default = before.kafka["results"][0]["configs"][0]["value"]
        talk.ask(API, version, alter(one(kind, name, config, value)))
        wait_until_set(twin, kind, name, config, value)
        talk.ask("describe_configs", 4, describe(kind, name, config))
        talk.ask("list_config_resources", 1, {"resource_types": [kind]})
        talk.ask(API, version, alter(one(kind, name, config, None, DELETE)))
        wait_until_set(twin, kind, name, config, default)
        talk.ask("list_config_resources", 1, {"resource_types": [kind]})


@pytest.mark.every_version(API)
def test_loggers(talk: Conversation, version: int) -> None:
    """Only the root has the same name in both."""
    changes: list[list[Change]] = [
        [],
        [("no.such.logger", SET, "INFO")],
        [("no.such.logger", DELETE, None)],
        [("", SET, "INFO")],
        [("ROOT", SET, "INFO")],
        [("root", DELETE, None)],
        [("root", APPEND, "INFO")],
        [("root", SUBTRACT, "INFO")],
        [("root", SET, None)],
    ]
    levels = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "info", "OFF", "ALL", "LOUD", "")
    changes += [[("root", SET, level)] for level in levels]
    with all_cases() as cases:
        for name in ("", "2", "x", "01", "-1"):
            with cases.case(f"name {name!r}"):
                validate(talk, version, (LOGGER, name, []))
        for each in changes:
            with cases.case(str(each)):
                validate(talk, version, (LOGGER, NODE_ID, each))


@pytest.mark.every_version(API)
def test_operations_that_there_are_not(twin: Twin, talk: Conversation, version: int) -> None:
    """Kafka looks at them for brokers only, and fails on all others of the request."""
    topic = twin.create_topic()
    for operation in (4, -1):
        for name in (NODE_ID, ""):
            validate(talk, version, one(BROKER, name, "log.retention.ms", "5", operation))
        for resource in (
            one(TOPIC, topic, "retention.ms", "5", operation),
            one(GROUP, "group", "consumer.session.timeout.ms", "50000", operation),
            one(METRICS, "subscription", "interval.ms", "1000", operation),
            one(LOGGER, NODE_ID, "root", "INFO", operation),
        ):
            body = alter(resource, validate_only=True)
            talk.ask(API, version, body, deviation="D-051")


@pytest.mark.every_version(API)
def test_values_that_grow_too_long(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    config = "follower.replication.throttled.replicas"
    long = ",".join(f"{index}:1" for index in range(4000))
    talk.ask(API, version, alter(one(TOPIC, topic, config, long)))
    wait_until_set(twin, TOPIC, topic, config, long)
    assert len(long) == 26_889
    for count in (800, 900):
        more = ",".join(f"{5000 + index}:1" for index in range(count))
        validate(talk, version, one(TOPIC, topic, config, more, APPEND))


@pytest.mark.every_version(API)
def test_too_many_changes(twin: Twin, talk: Conversation, version: int) -> None:
    """Beyond 10,000 nothing is altered; what the broker alone has refused keeps its reason."""
    topic = twin.create_topic()
    changes: list[Change] = [
        ("consumer.session.timeout.ms", SET, "50000"),
        ("consumer.heartbeat.interval.ms", SET, "6000"),
        ("share.session.timeout.ms", SET, "50000"),
        ("share.heartbeat.interval.ms", SET, "6000"),
        ("streams.session.timeout.ms", SET, "50000"),
    ]
    groups: list[Resource] = [(GROUP, f"group-{index}", changes) for index in range(2000)]
    validate(talk, version, *groups)
    others: list[Resource] = [
        (TOPIC, topic, []),
        one(TOPIC, topic, "retention.ms", "5"),
        one(BROKER, "x", "log.retention.ms", "5"),
        one(LOGGER, NODE_ID, "root", "INFO"),
        one(METRICS, "subscription", "interval.ms", "1000"),
    ]
    validate(talk, version, *groups, *others)


@pytest.mark.every_version(API)
def test_too_many_settings_of_a_broker(talk: Conversation, version: int) -> None:
    many: list[Change] = [(f"custom.{index}", SET, "1") for index in range(10_001)]
    validate(talk, version, (BROKER, NODE_ID, many))
    validate(talk, version, (BROKER, NODE_ID, many[:500]))
    body = alter((BROKER, NODE_ID, many[:501]), validate_only=True)
    talk.ask(API, version, body, deviation="D-053")

"""AlterConfigs: all configs of a resource anew, so that what is not named goes."""

from __future__ import annotations

import pytest

from compat_tests.twin.alterations import (
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    NODE_ID,
    SET,
    TOPIC,
    Change,
    Resource,
    alter,
    describe,
    one,
    replace,
    wait_until_set,
)
from compat_tests.twin.cases import all_cases
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

API = "alter_configs"
NOWHERE = "no-such-topic"
PATIENCE_S = 1.0


@pytest.mark.every_version(API)
def test_refused_and_accepted(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    contradiction: list[Change] = [
        ("min.compaction.lag.ms", SET, "6"),
        ("max.compaction.lag.ms", SET, "5"),
    ]
    resources: list[list[Resource]] = [
        [],
        [(TOPIC, topic, [])],
        [(TOPIC, NOWHERE, [])],
        [(TOPIC, "", [])],
        [(TOPIC, "!", [])],
        [one(TOPIC, topic, "retention.ms", "5")],
        [one(TOPIC, topic, "retention.ms", "x")],
        [one(TOPIC, topic, "retention.ms", None)],
        [one(TOPIC, topic, "no.such.config", "x")],
        [one(TOPIC, NOWHERE, "no.such.config", "x")],
        [one(TOPIC, topic, "cleanup.policy", "")],
        [one(TOPIC, topic, "remote.storage.enable", "true")],
        [(TOPIC, topic, contradiction)],
        [(TOPIC, topic, [("a", SET, "1"), ("a", SET, "1")])],
        [one(TOPIC, topic, "retention.ms", "5"), one(TOPIC, NOWHERE, "retention.ms", "5")],
        [(BROKER, NODE_ID, [])],
        [one(BROKER, NODE_ID, "log.retention.ms", "5000")],
        [one(BROKER, NODE_ID, "node.id", "2")],
        [one(BROKER, NODE_ID, "no.such.setting", "x")],
        [one(BROKER, NODE_ID, "min.insync.replicas", "2")],
        [one(BROKER, "2", "log.retention.ms", "5000")],
        [one(BROKER, "x", "log.retention.ms", "5000")],
        # It would take min.insync.replicas away, which a new cluster has fixed.
        [(BROKER, "", [])],
        [one(BROKER, "", "min.insync.replicas", "1")],
        [(BROKER, "", [("min.insync.replicas", SET, "1"), ("log.roll.ms", SET, "0")])],
        [(GROUP, "group", [])],
        [(GROUP, "", [])],
        [one(GROUP, "group", "consumer.session.timeout.ms", "50000")],
        [one(GROUP, "group", "consumer.session.timeout.ms", "1")],
        [(METRICS, "subscription", [])],
        [(METRICS, "", [])],
        [one(METRICS, "subscription", "interval.ms", "1")],
        [one(LOGGER, NODE_ID, "root", "INFO")],
    ]
    resources += [[(kind, "name", [])] for kind in (0, 1, 3, 64, 127, -1)]
    with all_cases() as cases:
        for each in resources:
            with cases.case(str(each)):
                talk.ask(API, version, replace(*each, validate_only=True))


@pytest.mark.every_version(API)
def test_what_is_not_named_goes(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic(configs={"retention.bytes": "5000000", "segment.ms": "5000"})
    names = ("retention.ms", "retention.bytes", "segment.ms")
    talk.ask("describe_configs", 4, describe(TOPIC, topic, *names))
    body = replace((TOPIC, topic, [("retention.ms", SET, "12345"), ("segment.ms", SET, "5000")]))
    talk.ask(API, version, {**body, "validate_only": True})
    talk.ask("describe_configs", 4, describe(TOPIC, topic, *names))
    talk.ask(API, version, body)
    wait_until_set(twin, TOPIC, topic, "retention.ms", "12345")
    talk.ask("describe_configs", 4, describe(TOPIC, topic, *names))
    talk.ask(API, version, replace((TOPIC, topic, [])))
    wait_until_set(twin, TOPIC, topic, "retention.ms", "604800000")
    talk.ask("describe_configs", 4, describe(TOPIC, topic, *names))


@pytest.mark.every_version(API)
def test_a_group_is_replaced(twin: Twin, talk: Conversation, version: int) -> None:
    group, first = twin.unused_name("group"), "consumer.heartbeat.interval.ms"
    second = "consumer.session.timeout.ms"
    talk.ask(API, version, replace(one(GROUP, group, first, "6000")))
    wait_until_set(twin, GROUP, group, first, "6000")
    talk.ask(API, version, replace(one(GROUP, group, second, "50000")))
    wait_until_set(twin, GROUP, group, second, "50000")
    talk.ask("describe_configs", 4, describe(GROUP, group, first, second))
    talk.ask("incremental_alter_configs", 1, alter(one(GROUP, group, second, None, DELETE)))
    wait_until_set(twin, GROUP, group, second, "45000")


@pytest.mark.every_version(API)
def test_a_resource_twice(twin: Twin, version: int) -> None:
    topic = twin.create_topic()
    nothing: Resource = (TOPIC, topic, [])
    for resources in ([nothing] * 2, [one(GROUP, "group", "a", "b")] * 3):
        with twin.conversation() as talk:
            body = replace(*resources, validate_only=True)
            talk.ask(API, version, body, deviation="D-050", patience_s=PATIENCE_S)

"""Which settings may change at run time, and how far."""

from functools import partial

import pytest

from klamm.broker.config import load, tables
from klamm.broker.config.definition import Update
from klamm.broker.config.dynamic import (
    OF_LISTENERS_OF_ALL_BROKERS,
    OF_ONE_LISTENER,
    THREAD_COUNTS,
    applicable,
    check_changeable,
    check_step,
)
from klamm.broker.config.groups import validate_group_configs
from klamm.broker.tests.config.refusals import refusal


@pytest.mark.parametrize(
    ("name", "for_one", "for_all"),
    [
        ("node.id", False, False),
        ("log.retention.hours", False, False),
        ("log.retention.ms", True, True),
        ("listeners", True, False),
        ("ssl.keystore.type", False, False),
        ("listener.name.plaintext.ssl.keystore.type", True, False),
        ("listener.name.plaintext.max.connections", True, True),
        ("leader.replication.throttled.rate", True, True),
        ("no.such.setting", True, True),
    ],
)
def test_who_may_have_a_setting_at_run_time(name: str, for_one: bool, for_all: bool) -> None:
    for per_broker, may_be in ((True, for_one), (False, for_all)):
        answer = refusal(partial(check_changeable, [name], per_broker=per_broker))
        assert (answer is None) == may_be, answer
        assert applicable({name: "1"}, per_broker=per_broker) == ({name: "1"} if may_be else {})


def test_names_are_those_of_settings_that_may_change() -> None:
    definitions = tables.broker_definitions()
    for name in (*OF_ONE_LISTENER, *OF_LISTENERS_OF_ALL_BROKERS, *THREAD_COUNTS):
        assert definitions[name].update is not Update.READ_ONLY, name


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"max.connections": "0"}),
        ({"num.io.threads": "8"}, {"num.io.threads": "3"}),
        ({"num.io.threads": "8"}, {"num.io.threads": "17"}),
        ({}, {"log.cleaner.threads": "3"}),
        ({}, {"log.cleaner.threads": "0"}),
        ({"log.cleaner.threads": "0"}, {"log.cleaner.threads": "3"}),
        ({}, {"log.cleaner.dedupe.buffer.size": "1048576"}),
        ({}, {"log.local.retention.ms": "-1"}),
        ({"log.retention.ms": "5"}, {"log.local.retention.ms": "6"}),
        ({"log.retention.bytes": "5"}, {"log.local.retention.bytes": "6"}),
        ({}, {"listeners": "PLAINTEXT://127.0.0.1:1"}),
    ],
)
def test_steps_that_are_too_large(before: dict[str, str], after: dict[str, str]) -> None:
    server = load(None, before)
    assert refusal(check_step, server, server.with_dynamic({}, after)) is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"max.connections": "1"}),
        ({"num.io.threads": "9"}, {"num.io.threads": "4"}),
        ({"num.io.threads": "8"}, {"num.io.threads": "16"}),
        # What an earlier version let somebody set can be taken back.
        ({"log.cleaner.threads": "0"}, {"log.cleaner.threads": "1"}),
        ({"log.cleaner.threads": "0"}, {"log.roll.ms": "5"}),
        ({"log.cleaner.dedupe.buffer.size": "5"}, {"log.roll.ms": "5"}),
        ({"log.retention.ms": "-1"}, {"log.local.retention.ms": "-1"}),
        ({"log.retention.ms": "5"}, {"log.local.retention.ms": "5"}),
        ({"listeners": "PLAINTEXT://:1"}, {"listeners": "PLAINTEXT://:1"}),
    ],
)
def test_steps_that_can_be_taken(before: dict[str, str], after: dict[str, str]) -> None:
    server = load(None, before)
    assert refusal(check_step, server, server.with_dynamic({}, after)) is None


def test_what_a_group_may_set_follows_the_broker() -> None:
    wide = load(
        None,
        {
            "group.consumer.min.session.timeout.ms": "10",
            "group.consumer.session.timeout.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "10",
            "group.consumer.heartbeat.interval.ms": "100",
        },
    )
    for configs, usual, with_wide in (
        ({"consumer.session.timeout.ms": "200"}, False, True),
        ({"consumer.heartbeat.interval.ms": "200"}, False, True),
        # Not above the heartbeat interval of the broker, or of the group itself.
        ({"consumer.session.timeout.ms": "100"}, False, False),
        ({"consumer.heartbeat.interval.ms": "1000"}, False, False),
        (
            {"consumer.session.timeout.ms": "300", "consumer.heartbeat.interval.ms": "300"},
            *(False, False),
        ),
    ):
        assert (refusal(validate_group_configs, configs, load(None, {})) is None) == usual
        assert (refusal(validate_group_configs, configs, wide) is None) == with_wide, configs

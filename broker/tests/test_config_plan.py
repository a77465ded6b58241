"""What a request to alter configs comes to: the decisions, without a broker."""

from __future__ import annotations

from uuid import uuid4

import pytest

from klamm.broker.config import load, tables
from klamm.broker.metadata.config_values import Change, Operation, new_value, split_list
from klamm.broker.metadata.configs import (
    BROKER_CONFIGS_MAX,
    VALUE_LENGTH_MAX,
    Alteration,
    ConfigPlan,
    with_stored,
)
from klamm.broker.metadata.image import MetadataImage, ResourceType
from klamm.broker.metadata.store import MetadataStore
from klamm.broker.metadata.topics import RECORDS_PER_REQUEST_MAX, Refused
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.stored.metadata import ConfigRecord, TopicRecord

SET, DELETE, APPEND, SUBTRACT = Operation
TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP
NODE_ID = 1
POLICY = tables.topic_definitions()["cleanup.policy"]


def image_with(*configs: tuple[int, str, str, str]) -> MetadataImage:
    image = MetadataImage()
    image.replay(TopicRecord(name="topic", topic_id=uuid4()))
    for kind, resource_name, name, value in configs:
        image.replay(
            ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=value)
        )
    return image


def decide(plan: ConfigPlan, *alterations: Alteration) -> list[ErrorCode | None]:
    outcomes: list[Refused | None] = run_inline(plan.decide(alterations))
    return [None if refused is None else refused.code for refused in outcomes]


def new_plan(image: MetadataImage | None = None, **static: str) -> ConfigPlan:
    settings = {name.replace("_", "."): value for name, value in static.items()}
    image = image_with() if image is None else image
    return ConfigPlan(image, with_stored(load(None, settings), image), NODE_ID)


def setting(kind: int, resource_name: str, **configs: str) -> Alteration:
    changes = [Change(name.replace("_", "."), SET, value) for name, value in configs.items()]
    return Alteration(kind, resource_name, changes)


def written(plan: ConfigPlan) -> list[tuple[str, str, str | None]]:
    return [(record.resource_name, record.name, record.value) for record in plan.records]


@pytest.mark.parametrize(
    ("current", "operation", "value", "result"),
    [
        (None, SET, "a", "a"),
        ("a", DELETE, None, None),
        ("a", DELETE, "b", None),
        (None, APPEND, "compact", "delete,compact"),
        ("", APPEND, "compact", "compact"),
        ("a,b", APPEND, "b,c,c", "a,b,c"),
        ("a,a", APPEND, "b", "a,a,b"),
        (",a,", APPEND, "b", "a,b"),
        ("a", APPEND, "", "a,"),
        ("a", APPEND, ",", "a"),
        ("a,b,a", SUBTRACT, "a", "b,a"),
        ("a,b,a", SUBTRACT, "a,a,a", "b"),
        ("a", SUBTRACT, "a,b", ""),
        (None, SUBTRACT, "delete", ""),
        ("", SUBTRACT, "delete", ""),
    ],
)
def test_values_after_an_operation(
    current: str | None, operation: Operation, value: str | None, result: str | None
) -> None:
    assert new_value(Change("cleanup.policy", operation, value), current, POLICY) == result


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", [""]),
        (",", []),
        ("a", ["a"]),
        ("a,", ["a"]),
        (",a", ["", "a"]),
        ("a,,b,,", ["a", "", "b"]),
    ],
)
def test_lists_are_split_as_java_does(text: str, items: list[str]) -> None:
    assert split_list(text) == items


def test_only_what_changes_is_written_for_topics() -> None:
    plan = new_plan(image_with((TOPIC, "topic", "retention.ms", "5")))
    same = setting(TOPIC, "topic", retention_ms="5")
    assert decide(plan, same) == [None]
    assert (plan.records, plan.altered) == ([], [])
    deleted = Alteration(TOPIC, "topic", [Change("segment.ms", DELETE, None)])
    assert decide(new_plan(), deleted) == [None]


def test_a_broker_is_told_again_what_it_knows() -> None:
    plan = new_plan(image_with((BROKER, "", "log.roll.ms", "5")))
    assert decide(plan, setting(BROKER, "", log_roll_ms="5")) == [None]
    assert written(plan) == [("", "log.roll.ms", "5")]


def test_replacing_takes_away_what_is_not_named() -> None:
    image = image_with((TOPIC, "topic", "retention.ms", "5"), (TOPIC, "topic", "segment.ms", "5"))
    plan = new_plan(image)
    changes = [Change("segment.ms", SET, "6"), Change("flush.ms", SET, "7")]
    assert decide(plan, Alteration(TOPIC, "topic", changes, replaces_all=True)) == [None]
    assert written(plan) == [
        ("topic", "segment.ms", "6"),
        ("topic", "flush.ms", "7"),
        ("topic", "retention.ms", None),
    ]


def test_one_mistake_refuses_its_resource_and_no_other() -> None:
    plan = new_plan()
    bad = setting(TOPIC, "topic", retention_ms="5", segment_ms="0")
    good = setting(GROUP, "group", consumer_session_timeout_ms="50000")
    assert decide(plan, bad, good) == [ErrorCode.INVALID_CONFIG, None]
    assert written(plan) == [("group", "consumer.session.timeout.ms", "50000")]
    assert plan.altered == [(GROUP, "group")]


def test_configs_of_a_topic_are_judged_with_those_it_has() -> None:
    image = image_with((TOPIC, "topic", "min.compaction.lag.ms", "6"))
    contradicting = setting(TOPIC, "topic", max_compaction_lag_ms="5")
    assert decide(new_plan(image), contradicting) == [ErrorCode.INVALID_CONFIG]
    changes = [*contradicting.changes, Change("min.compaction.lag.ms", DELETE, None)]
    assert decide(new_plan(image), Alteration(TOPIC, "topic", changes)) == [None]
    # AlterConfigs takes the other one away.
    assert decide(new_plan(image), contradicting._replace(replaces_all=True)) == [None]


def test_of_a_request_that_changes_too_much_nothing_is_left() -> None:
    plan = new_plan()
    groups = [
        setting(GROUP, f"group-{number}", consumer_session_timeout_ms="50000")
        for number in range(RECORDS_PER_REQUEST_MAX)
    ]
    roll = setting(BROKER, "", log_roll_ms="5")
    codes = decide(plan, roll, *groups, setting(BROKER, "x", log_roll_ms="5"))
    assert set(codes[:-1]) == {ErrorCode.POLICY_VIOLATION}
    assert codes[-1] == ErrorCode.INVALID_REQUEST
    assert (plan.records, plan.altered) == ([], [])
    assert plan.server.log_defaults.segment_ms == load(None, {}).log_defaults.segment_ms
    assert set(decide(new_plan(), *groups)) == {None}


def test_settings_of_two_layers_are_judged_together() -> None:
    low = setting(BROKER, "", log_cleaner_min_compaction_lag_ms="6")
    high = setting(BROKER, "1", log_cleaner_max_compaction_lag_ms="5")
    assert decide(new_plan(), low) == decide(new_plan(), high) == [None]
    plan = new_plan()
    assert decide(plan, low, high) == [None, ErrorCode.INVALID_REQUEST]
    assert plan.server.log_defaults.min_compaction_lag_ms == 6


def test_the_layers_of_a_broker() -> None:
    plan = new_plan(None, log_retention_hours="1")
    assert (
        decide(plan, setting(BROKER, "", log_retention_ms="5"), setting(BROKER, "1")) == [None] * 2
    )
    assert plan.server.log_defaults.retention_ms == 5
    assert decide(plan, setting(BROKER, "1", log_retention_ms="6")) == [None]
    assert plan.server.log_defaults.retention_ms == 6
    # Nobody reads what is written under another form of the id.
    assert decide(plan, setting(BROKER, "01", log_retention_ms="7")) == [None]
    assert plan.server.log_defaults.retention_ms == 6
    gone = Change("log.retention.ms", DELETE, None)
    assert decide(plan, Alteration(BROKER, "1", [gone])) == [None]
    assert plan.server.log_defaults.retention_ms == 5


def test_what_was_stored_by_another_broker_is_not_in_the_way() -> None:
    """It can't be set here at run time, so it has no effect, and later changes are judged alone."""
    image = image_with(
        (BROKER, "1", "num.partitions", "7"),
        (BROKER, "1", "log.roll.ms", "5"),
        (BROKER, "", "ssl.client.auth", "required"),
        (BROKER, "", "ssl.keystore.type", "JKS"),
    )
    plan = new_plan(image)
    assert (plan.server.num_partitions, plan.server.log_defaults.segment_ms) == (1, 5)
    assert plan.server.layers.dynamic_default == {}
    assert decide(plan, setting(BROKER, "1", log_roll_ms="6")) == [None]
    assert decide(plan, setting(BROKER, "", log_roll_ms="6")) == [None]
    assert decide(plan, setting(BROKER, "1", num_partitions="7")) == [ErrorCode.INVALID_REQUEST]


def test_how_many_settings_a_broker_may_have() -> None:
    image = image_with(
        *((BROKER, "1", f"custom.{number}", "1") for number in range(BROKER_CONFIGS_MAX))
    )
    plan = new_plan(image)
    one_more = setting(BROKER, "1", one_more="1")
    assert decide(plan, one_more) == [ErrorCode.POLICY_VIOLATION]
    assert decide(plan, Alteration(BROKER, "1", [Change("custom.1", DELETE, None)])) == [None]
    assert decide(plan, setting(BROKER, "1", custom_1="2")) == [None]
    assert decide(plan, setting(BROKER, "", one_more="1")) == [None]


def test_levels_are_neither_stored_nor_changed_by_a_decision() -> None:
    plan = new_plan()
    levels = [Change("root", SET, "ERROR"), Change("klamm.broker.broker", DELETE, None)]
    assert decide(plan, Alteration(ResourceType.BROKER_LOGGER, "1", levels)) == [None]
    assert plan.levels == {"root": "ERROR", "klamm.broker.broker": None}
    assert plan.records == []
    bad = [Change("klamm.broker.broker", SET, "INFO"), Change("root", SET, "loud")]
    assert decide(plan, Alteration(ResourceType.BROKER_LOGGER, "1", bad)) == [
        ErrorCode.INVALID_CONFIG
    ]
    assert plan.levels == {"root": "ERROR", "klamm.broker.broker": None}


def test_a_refusal_holds_nothing_but_what_the_reply_says() -> None:
    """There may be tens of thousands of them, and a traceback has all that its frames have."""
    unknown = [setting(TOPIC, "topic", unknown="1"), setting(GROUP, "", unknown="1")]
    for refused in run_inline(new_plan().decide(unknown)):
        assert refused is not None
        assert refused.message
        assert refused.__traceback__ is refused.__context__ is None


def test_others_have_their_turn_while_many_configs_of_one_resource_are_looked_at() -> None:
    changes = [Change(f"custom.{number}", SET, "1") for number in range(49_000)]
    steps = new_plan().decide([Alteration(TOPIC, "topic", changes)])
    # Their form, the records, the lengths of those, and the configs as they will be.
    assert sum(1 for _ in steps) > 4 * len(changes)


def test_configs_of_many_resources_come_into_force_one_resource_at_a_step() -> None:
    records = [
        ConfigRecord(resource_type=GROUP, resource_name=f"{number}", name=name, value="1")
        for number in range(100)
        for name in ("a", "b")
    ]
    store = MetadataStore(MemoryFileSystem(), "/data")
    for number, _ in enumerate(store._replay_made(records)):
        assert store.image.resource_configs(GROUP, f"{number}") == {"a": "1", "b": "1"}
        assert store.image.resource_configs(GROUP, f"{number + 1}") == {}
    assert number == 98


@pytest.mark.parametrize("name", ["", "1"])
def test_a_setting_of_a_broker_is_no_longer_than_a_record_can_hold(name: str) -> None:
    plan = new_plan()
    assert decide(plan, setting(BROKER, name, no_such_setting="x" * VALUE_LENGTH_MAX)) == [None]
    assert len(plan.records) == 1
    too_long = setting(BROKER, name, no_such_setting="x" * (VALUE_LENGTH_MAX + 1))
    assert decide(plan, too_long) == [ErrorCode.INVALID_CONFIG]
    assert len(plan.records) == 1

"""What is set at run time goes over what the broker was started with."""

import pytest

from klamm.broker.config import load
from klamm.broker.config.entry import ConfigSource
from klamm.broker.config.layers import Layers
from klamm.broker.tests.config.refusals import refusal


def test_a_higher_layer_wins() -> None:
    layers = Layers({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "2"}, {"c": "3"})
    assert layers.merged() == {"a": "1", "b": "2", "c": "3"}


@pytest.mark.parametrize(
    ("static", "dynamic", "merged"),
    [
        ("log.retention.ms", "log.retention.hours", {"log.retention.hours"}),
        ("log.retention.hours", "log.retention.ms", {"log.retention.ms"}),
        ("log.roll.ms", "log.roll.hours", {"log.roll.hours"}),
        ("log.roll.jitter.ms", "log.roll.jitter.hours", {"log.roll.jitter.hours"}),
        ("log.flush.scheduler.interval.ms", "log.flush.interval.ms", {"log.flush.interval.ms"}),
        (
            *("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
            {"log.flush.interval.ms", "log.flush.scheduler.interval.ms"},
        ),
        ("log.roll.ms", "log.retention.ms", {"log.roll.ms", "log.retention.ms"}),
    ],
)
def test_a_setting_is_replaced_under_all_its_names(
    static: str, dynamic: str, merged: set[str]
) -> None:
    assert Layers({static: "1"}, {dynamic: "2"}).merged().keys() == merged


def test_the_layers_have_names() -> None:
    layers = Layers({"a": "1"}, {"a": "2"}, {"a": "3"})
    assert [(source, layer["a"]) for source, layer in layers.by_source()] == [
        (ConfigSource.DYNAMIC_BROKER_CONFIG, "3"),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, "2"),
        (ConfigSource.STATIC_BROKER_CONFIG, "1"),
    ]


def test_with_dynamic_replaces_what_was_set_at_run_time_before() -> None:
    started = load(None, {"max.connections": "5", "log.retention.hours": "1"})
    first = started.with_dynamic({"max.connections": "6"}, {"log.retention.ms": "7"})
    second = first.with_dynamic({}, {"max.connections": "8"})
    assert (started.max_connections, started.log_defaults.retention_ms) == (5, 3_600_000)
    assert (first.max_connections, first.log_defaults.retention_ms) == (6, 7)
    assert (second.max_connections, second.log_defaults.retention_ms) == (8, 3_600_000)
    assert second.with_dynamic({}, {}).given == started.given


def test_the_mappings_given_at_run_time_are_copied() -> None:
    cluster = {"max.connections": "6"}
    config = load(None, {}).with_dynamic(cluster, {})
    cluster["max.connections"] = "broken"
    assert config.given == {"max.connections": "6"}


def test_quotas_exist_at_run_time_only() -> None:
    quota = {"leader.replication.throttled.rate": "1000"}
    config = load(None, {})
    assert config.with_dynamic(quota, {}).given == quota
    assert config.with_dynamic({}, quota).given == quota
    assert refusal(config.with_dynamic, {"leader.replication.throttled.rate": "-1"}, {}) is not None
    assert refusal(load, None, quota) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections", "many"),
        ("log.retention.ms", "0"),
        ("config.providers", "file"),
        ("listener.name.plaintext.max.connections", "5"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_at_run_time_too(name: str, value: str) -> None:
    config = load(None, {})
    assert refusal(config.with_dynamic, {name: value}, {}) is not None
    assert refusal(config.with_dynamic, {}, {name: value}) is not None


@pytest.mark.parametrize("name", ["no.such.setting", "", "listener.name.plaintext.no.such.setting"])
def test_a_name_that_no_table_has_is_kept_at_run_time_only(name: str) -> None:
    config = load(None, {})
    assert config.with_dynamic({}, {name: "1"}).given == {name: "1"}
    assert refusal(load, None, {name: "1"}) is not None

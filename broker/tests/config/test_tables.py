"""The tables: complete, consistent, and the same as what the code uses."""

import re
from collections import Counter
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.config import load, tables
from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.server_config import PLAIN_ATTRIBUTES, ServerConfig
from klamm.broker.config.synonyms import TOPIC_SYNONYMS
from klamm.broker.config.values import default_value, parse_value, value_text
from klamm.broker.tests.config.refusals import refusal
from klamm.log.config import LogConfig

BROKER_FOLDER = Path(__file__).resolve().parent.parent.parent
TABLES = {
    "broker": tables.broker_definitions(),
    "broker, at run time": tables.dynamic_broker_definitions(),
    "topic": tables.topic_definitions(),
    "group": tables.group_definitions(),
    "client metrics": tables.client_metrics_definitions(),
}
EVERY_SETTING = [definition for table in TABLES.values() for definition in table.values()]
# Settings with an attribute of another form or that only checks read.
DERIVED = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "max.connections.per.ip.overrides",
    "metadata.log.dir",
}


def test_how_many_settings_there_are() -> None:
    """The numbers of Apache Kafka 4.3.1, hidden ones included, and klamm's own."""
    counts = {
        name: Counter(definition.klamm_own for definition in table.values())
        for name, table in TABLES.items()
    }
    assert counts == {
        "broker": {False: 360, True: 6},
        "broker, at run time": {False: 3},
        "topic": {False: 34, True: 1},
        "group": {False: 17},
        "client metrics": {False: 3},
    }


def test_defaults_are_valid_and_written_as_they_are_printed() -> None:
    for definition in EVERY_SETTING:
        assert value_text(default_value(definition)) == definition.default, definition.name


def test_texts_are_sentences() -> None:
    for definition in EVERY_SETTING:
        name = definition.name
        assert re.match(r"[a-z][a-z0-9.]*\Z", name)
        assert re.match(r"[A-Z].*\.\Z", definition.meaning), name
        assert definition.ignored is None or definition.ignored.endswith("."), name
        assert definition.documentation.isprintable(), name
        assert definition.valid is None or definition.valid.describe(), name


def test_a_difference_differs_and_a_supported_value_is_the_default() -> None:
    for definition in EVERY_SETTING:
        if definition.difference is not None:
            assert definition.difference.kafka_default != definition.default, definition.name
            assert definition.difference.reason.endswith("."), definition.name
        if definition.supported is not None:
            assert (definition.default or "") in definition.supported, definition.name


def test_secrets_have_no_default() -> None:
    secrets = [definition for definition in EVERY_SETTING if definition.is_sensitive]
    assert {definition.name for definition in secrets} >= {
        "ssl.keystore.password",
        "ssl.key.password",
        "sasl.jaas.config",
        "delegation.token.secret.key",
    }
    assert all(definition.default is None for definition in secrets)
    assert all(definition.type is ConfigType.PASSWORD for definition in secrets)


def test_no_name_stands_in_two_broker_tables() -> None:
    names: Counter[str] = Counter()
    for table in tables._BROKER_TABLES:
        names.update(tables._table(table).keys())
    assert [name for name, count in names.items() if count > 1] == []
    assert names.keys() == tables.broker_definitions().keys()
    assert all(
        tables.find_broker_definition(name) is definition
        for name, definition in tables.broker_definitions().items()
    )


# --- ServerConfig and LogConfig say the same ---


@pytest.mark.parametrize("attribute", sorted(PLAIN_ATTRIBUTES))
def test_a_default_of_server_config_is_that_of_the_table(attribute: str) -> None:
    definition = tables.broker_definitions()[attribute.replace("_", ".")]
    default = default_value(definition)
    expected = tuple(default) if isinstance(default, list) else default
    assert getattr(ServerConfig(), attribute) == expected


def test_the_other_defaults_of_server_config() -> None:
    config, built = ServerConfig(), load(None, {})
    defaults = tables.broker_definitions()
    assert [str(listener) for listener in config.listeners] == [defaults["listeners"].default]
    assert config.advertised_listeners == config.listeners
    assert config.log_dirs == (defaults["log.dir"].default,)
    assert str(config.node_id) == defaults["broker.id"].default
    for field in fields(ServerConfig):
        if field.name != "layers":
            assert getattr(config, field.name) == getattr(built, field.name)


@pytest.mark.parametrize("field", [field.name for field in fields(LogConfig)])
def test_a_default_of_log_config_is_that_of_the_table(field: str) -> None:
    value = default_value(tables.topic_definitions()[field.replace("_", ".")])
    default = getattr(LogConfig(), field)
    assert default == (frozenset(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("name", TOPIC_SYNONYMS)
def test_topic_and_broker_agree_on_the_default(name: str) -> None:
    """The broker's default, in the unit of the topic, is what a topic has by itself."""
    expected = default_value(tables.topic_definitions()[name])
    for synonym in TOPIC_SYNONYMS[name]:
        definition = tables.broker_definitions()[synonym.name]
        value = default_value(definition)
        if value is None:
            continue
        assert (value * synonym.factor if isinstance(value, int) else value) == expected
        return
    assert name == "none has a default"


def test_giving_every_default_changes_nothing() -> None:
    given = {
        name: definition.default
        for name, definition in tables.broker_definitions().items()
        if definition.default is not None
    }
    explicit, implicit = load(None, given), ServerConfig()
    for field in fields(ServerConfig):
        if field.name != "layers":
            assert getattr(explicit, field.name) == getattr(implicit, field.name), field.name


# --- what the tables promise is what the code does ---


@cache
def _code(*folders: str) -> str:
    """The code outside the configuration, in which a setting that counts must be read."""
    root = BROKER_FOLDER.parent
    return "\n".join(
        path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
        if not {"tests", "config"} & set(path.relative_to(root).parts[:-1])
    )


@pytest.mark.parametrize("attribute", sorted(PLAIN_ATTRIBUTES))
def test_every_attribute_is_read_by_the_broker(attribute: str) -> None:
    assert re.search(rf"\.{attribute}\b", _code("broker")), f"nothing reads {attribute}"
    assert tables.broker_definitions()[attribute.replace("_", ".")].ignored is None


def test_a_broker_setting_that_is_not_ignored_has_a_place() -> None:
    of_topics = {synonym.name for synonyms in TOPIC_SYNONYMS.values() for synonym in synonyms}
    attributes = {attribute.replace("_", ".") for attribute in PLAIN_ATTRIBUTES}
    used = {
        definition.name
        for definition in tables.broker_definitions().values()
        if definition.ignored is None and definition.supported is None
    }
    assert used - attributes - of_topics - DERIVED == set()
    assert (attributes | DERIVED) - used == set()


@pytest.mark.parametrize("attribute", [field.name for field in fields(LogConfig)])
def test_a_topic_config_is_read_unless_it_is_called_ignored(attribute: str) -> None:
    is_read = re.search(rf"\.{attribute}\b", _code("broker", "log")) is not None
    is_ignored = tables.topic_definitions()[attribute.replace("_", ".")].ignored is not None
    assert is_read != is_ignored


def test_a_topic_config_that_is_not_ignored_has_a_place() -> None:
    attributes = {field.name.replace("_", ".") for field in fields(LogConfig)}
    used = {
        definition.name
        for definition in tables.topic_definitions().values()
        if not definition.ignored and not definition.supported
    }
    assert used - attributes == {"internal.segment.bytes"}


def test_a_topic_config_and_its_broker_setting_are_ignored_together() -> None:
    for name, synonyms in TOPIC_SYNONYMS.items():
        of_topic = tables.topic_definitions()[name].ignored
        for synonym in synonyms:
            of_broker = tables.broker_definitions()[synonym.name].ignored
            assert (of_topic is None) == (of_broker is None), f"{name} and {synonym.name}"


def test_only_settings_that_kafka_can_change_are_called_changeable() -> None:
    """What a topic follows can be changed at run time, except in the coarser units."""
    for synonyms in TOPIC_SYNONYMS.values():
        first, *others = (tables.broker_definitions()[synonym.name] for synonym in synonyms)
        if first.name not in ("log.local.retention.ms", "log.local.retention.bytes"):
            assert first.update is Update.CLUSTER_WIDE, first.name
        assert all(other.update is Update.READ_ONLY for other in others)


@given(st.sampled_from(EVERY_SETTING), st.text())
def test_any_text_is_a_value_or_refused_in_one_line(definition: Definition, text: str) -> None:
    refused = refusal(parse_value, definition, text)
    if refused is not None:
        assert refused.startswith(definition.name)
    if definition.is_sensitive:
        assert refused is None

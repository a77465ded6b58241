"""Texts to values and back, by Kafka's rules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.config.definition import ConfigType, Definition
from klamm.broker.config.validators import THROTTLED_REPLICAS, ConfigValue, ListOf
from klamm.broker.config.values import parse_value, value_text
from klamm.broker.tests.config.refusals import refusal

BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def setting(kind: ConfigType) -> Definition:
    return Definition("some.setting", kind, None, "Says something.")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, "true", True),
        (ConfigType.BOOLEAN, " FALSE ", False),
        (ConfigType.INT, "0", 0),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-5", -5),
        (ConfigType.INT, " 007 ", 7),
        (ConfigType.DOUBLE, "1", 1.0),
        (ConfigType.DOUBLE, ".5", 0.5),
        (ConfigType.DOUBLE, "5.", 5.0),
        (ConfigType.DOUBLE, "1e7", 1e7),
        (ConfigType.DOUBLE, "-2.5E-3d", -0.0025),
        (ConfigType.DOUBLE, "Infinity", math.inf),
        (ConfigType.LIST, "", []),
        (ConfigType.LIST, "a", ["a"]),
        (ConfigType.LIST, " a , b,c ", ["a", "b", "c"]),
        (ConfigType.STRING, " a b ", "a b"),
        (ConfigType.CLASS, "os.system", "os.system"),
        (ConfigType.PASSWORD, "s3cret", "s3cret"),
    ],
)
def test_accepted(kind: ConfigType, text: str, value: ConfigValue) -> None:
    assert parse_value(setting(kind), text) == value


def test_what_a_list_names_twice_counts_once() -> None:
    text = "delete, compact,delete"
    policy = setting(ConfigType.LIST)._replace(valid=ListOf(("compact", "delete")))
    assert parse_value(policy, text) == ["delete", "compact"]
    # As in Kafka: not where a list has rules of its own.
    replicas = setting(ConfigType.LIST)._replace(valid=THROTTLED_REPLICAS)
    assert parse_value(replicas, "0:1,0:1") == ["0:1", "0:1"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((ConfigType.BOOLEAN, text) for text in ("", "yes", "1", "t", "truefalse")),
        *(
            (ConfigType.INT, text)
            for text in ("", "five", "1.0", "0x10", "1_000", "--1", "+", "1L")
        ),
        *(
            (ConfigType.DOUBLE, text)
            for text in ("", "half", "inf", "nan", "1_0", "1,5", ".", "e5")
        ),
    ],
)
def test_refused(kind: ConfigType, text: str) -> None:
    refused = refusal(parse_value, setting(kind), text)
    assert refused is not None
    assert refused.startswith(f"some.setting={text} must be ")


@pytest.mark.parametrize("kind", BITS)
def test_numbers_have_the_width_of_their_type(kind: ConfigType) -> None:
    limit = 1 << (BITS[kind] - 1)
    for number in (-limit, limit - 1):
        assert parse_value(setting(kind), str(number)) == number
    for number in (-limit - 1, limit):
        refused = refusal(parse_value, setting(kind), str(number))
        assert refused is not None
        assert str(limit - 1) in refused


def test_a_number_of_a_million_digits_is_refused_unread() -> None:
    assert refusal(parse_value, setting(ConfigType.LONG), "9" * 1_000_000) is not None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (-1, "-1"),
        ([], ""),
        (["a", "b"], "a,b"),
        (0.0, "0.0"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.5e10, "-1.5E10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (1e-4, "1.0E-4"),
        (1e22, "1.0E22"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_printed_as_java_prints(value: ConfigValue, text: str | None) -> None:
    assert value_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_double_survives_being_printed(value: float) -> None:
    text = value_text(value)
    assert text is not None
    assert parse_value(setting(ConfigType.DOUBLE), text) == value


@given(st.sampled_from(ConfigType), st.text())
def test_any_text_is_a_value_or_refused(kind: ConfigType, text: str) -> None:
    refused = refusal(parse_value, setting(kind), text)
    if refused is None:
        value = parse_value(setting(kind), text)
        again = value_text(value)
        assert again is not None
        assert value_text(parse_value(setting(kind), again)) == again

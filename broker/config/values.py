"""Text to typed value and back, with the rules of Kafka's ConfigDef.

Values travel as text (in files, on the wire, in the metadata log); only these functions know how
a text becomes a value. No text ever names code to load: a class is a text like any other.
"""

import math
import re

from klamm.broker.config.definition import ConfigType, Definition
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.validators import ConfigValue, ListOf

_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
# Java's own notation for doubles may end in a type letter.
_DOUBLE = r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?\Z"


def parse_value(definition: Definition, text: str) -> ConfigValue:
    """Returns the typed, checked value of a text.

    Raises:
        ConfigError: The text has the wrong type or breaks the setting's rule. The message never
            repeats a secret.
    """
    value = _convert(definition, text.strip())
    if isinstance(value, list) and isinstance(definition.valid, ListOf):
        # What is named twice counts once (KIP-1161).
        value = list(dict.fromkeys(value))
    problem = definition.valid.check(value) if definition.valid is not None else None
    if problem is not None:
        raise ConfigError(f"{definition.name}{_shown(definition, text)} {problem}")
    return value


def default_value(definition: Definition) -> ConfigValue:
    """Returns the typed default; None where a setting has none."""
    return None if definition.default is None else parse_value(definition, definition.default)


def _shown(definition: Definition, text: str) -> str:
    return "" if definition.is_sensitive else f"={shown(text)}"


def _convert(definition: Definition, text: str) -> ConfigValue:
    match definition.type:
        case ConfigType.BOOLEAN:
            lowered = text.lower()
            if lowered not in ("true", "false"):
                raise ConfigError(f"{definition.name}={shown(text)} must be true or false")
            return lowered == "true"
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
            return _integer(definition, text)
        case ConfigType.DOUBLE:
            match = re.match(_DOUBLE, text)
            if match is None:
                raise ConfigError(f"{definition.name}={shown(text)} must be a number such as 0.5")
            return float(match[1])
        case ConfigType.LIST:
            return [item.strip() for item in text.split(",")] if text else []
        case _:
            return text


def _integer(definition: Definition, text: str) -> int:
    bits = _INTEGER_BITS[definition.type]
    limit = 1 << (bits - 1)
    # The length is bounded first: Python would spend quadratic time on a number of many digits.
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = int(text) if len(text) <= 40 and digits.isdecimal() else None
    if number is None or not -limit <= number < limit:
        raise ConfigError(
            f"{definition.name}={shown(text)} must be a whole number from {-limit} to {limit - 1}"
        )
    return number


def value_text(value: ConfigValue) -> str | None:
    """Returns a typed value as Kafka prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, list):
        return ",".join(value)
    return str(value)


def _double_text(value: float) -> str:
    """Returns a double in Java's notation: plain from 0.001 to 10 million, else one digit and E."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    digits = mantissa.replace(".", "")
    power = int(exponent or 0) + len(mantissa.partition(".")[0]) - 1
    stripped = digits.lstrip("0")
    power -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0") or "0"
    return f"{sign}{stripped[0]}.{stripped[1:] or '0'}E{power}"

"""The rules that a value must follow after its type is right, as small objects.

`check` returns what the value must be, as the rest of a sentence that begins with the value, or
None when the value is fine; `describe` says the same for the documentation page.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

ConfigValue: TypeAlias = bool | int | float | str | list[str] | None


class Validator(Protocol):
    def check(self, value: ConfigValue) -> str | None: ...

    def describe(self) -> str: ...


class Range(NamedTuple):
    """A number between two bounds, both allowed; None is no bound."""

    low: float | None = None
    high: float | None = None

    def check(self, value: ConfigValue) -> str | None:
        # A value without a default may be absent. NaN passes, as it does in Kafka: no comparison
        # with it is true.
        if not isinstance(value, int | float):
            return None
        if self.low is not None and value < self.low:
            return f"must be at least {self.low}"
        if self.high is not None and value > self.high:
            return f"must be at most {self.high}"
        return None

    def describe(self) -> str:
        if self.high is None:
            return f"at least {self.low}"
        return f"{self.low} to {self.high}"


def at_least(low: float) -> Range:
    return Range(low)


def between(low: float, high: float) -> Range:
    return Range(low, high)


class OneOf(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]
    ignore_case: bool = False

    def check(self, value: ConfigValue) -> str | None:
        word = value.upper() if self.ignore_case and isinstance(value, str) else value
        if word in self.words:
            return None
        return f"must be one of {', '.join(self.words)}"

    def describe(self) -> str:
        return ", ".join(self.words) + (" (in any case)" if self.ignore_case else "")


def one_of(*words: str) -> OneOf:
    return OneOf(words)


class ListOf(NamedTuple):
    """A list; its items, where `words` is given, are from these."""

    words: tuple[str, ...] = ()
    may_be_empty: bool = True

    def check(self, value: ConfigValue) -> str | None:
        if not isinstance(value, list):
            return None
        if not value and not self.may_be_empty:
            return "must name at least one item"
        for item in value:
            if not item:
                return "must not have an empty item"
            if self.words and item not in self.words:
                return f"must only name {', '.join(self.words)}"
        return None

    def describe(self) -> str:
        items = f"any of {', '.join(self.words)}" if self.words else "any items"
        return items if self.may_be_empty else f"{items}, at least one"


class NonEmpty(NamedTuple):
    """A text that, where it is given, is not empty."""

    def check(self, value: ConfigValue) -> str | None:
        return "must not be empty" if value == "" else None

    def describe(self) -> str:
        return "not empty"


class Rule(NamedTuple):
    """A rule of its own, for the few settings that need one."""

    holds: Callable[[ConfigValue], bool]
    words: str

    def check(self, value: ConfigValue) -> str | None:
        return None if self.holds(value) else f"must be {self.words}"

    def describe(self) -> str:
        return self.words


# Compiled, because there may be thousands of them in a list.
_is_replica = re.compile(r"[0-9]+:[0-9]+\Z").match


def _throttled_replicas(value: ConfigValue) -> bool:
    if not isinstance(value, list):
        return False
    return value == ["*"] or all(map(_is_replica, value))


# ISO 8601 durations in days, hours, minutes and seconds.
_DURATION = r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?\Z"


def _offset_reset(value: ConfigValue) -> bool:
    return isinstance(value, str) and (
        value.lower() in ("latest", "earliest") or re.match(_DURATION, value, re.I) is not None
    )


GZIP_LEVEL = Rule(
    lambda value: value == -1 or (isinstance(value, int) and 1 <= value <= 9), "1 to 9, or -1"
)
THROTTLED_REPLICAS = Rule(
    _throttled_replicas, "* or a list of partition:broker pairs such as 0:1,1:1"
)
OFFSET_RESET = Rule(_offset_reset, "latest, earliest or by_duration:P… (ISO 8601)")

"""Two replies in, a list of differences out.

A path names the place of a value: `topics[1].partitions[0].error_code`. Its pattern leaves out
what is between the brackets, `topics[].partitions[].error_code`; rules and deviations name
patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Rule = Callable[[Any, Any], bool]


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


@dataclass(frozen=True)
class Difference:
    path: str
    kafka: Any
    other: Any

    @property
    def pattern(self) -> str:
        return re.sub(r"\[[^]]*\]", "[]", self.path)

    def __str__(self) -> str:
        return f"{self.path}: Kafka {_short(self.kafka)}, klamm {_short(self.other)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"


def differences(
    kafka: Any, other: Any, *, rules: Mapping[str, Rule], keyed: Mapping[str, str]
) -> list[Difference]:
    """All places where two plain values differ.

    Args:
        rules: pattern to a function that says whether two values there count as the same.
        keyed: pattern of a list to the field that names its items; the order there is free.
            Of several fields, as in `name or topic_id`, the first that the version has.
    """
    found: list[Difference] = []

    def walk(path: str, left: Any, right: Any) -> None:
        pattern = Difference(path, None, None).pattern
        if pattern in rules and left is not ABSENT and right is not ABSENT:
            if not rules[pattern](left, right):
                found.append(Difference(path, left, right))
        elif isinstance(left, dict) and isinstance(right, dict):
            for key in left | right:
                inner = f"{path}.{key}" if path else key
                walk(inner, left.get(key, ABSENT), right.get(key, ABSENT))
        elif isinstance(left, list) and isinstance(right, list):
            walk_lists(path, left, right, keyed.get(f"{pattern}[]"))
        elif left != right or type(left) is not type(right):
            found.append(Difference(path, left, right))

    def walk_lists(path: str, left: list[Any], right: list[Any], key: str | None) -> None:
        lefts, rights = _by_name(left, key), _by_name(right, key)
        for name in lefts | rights:
            walk(f"{path}[{name}]", lefts.get(name, ABSENT), rights.get(name, ABSENT))

    walk("", kafka, other)
    return found


def _by_name(items: list[Any], key: str | None) -> dict[str, Any]:
    """Items by position, or by the value of their key field, numbered where that repeats."""
    if key is None:
        return {str(index): item for index, item in enumerate(items)}
    named: dict[str, Any] = {}
    for item in items:
        name = base = _name_of(item, key)
        repeat = 1
        while name in named:
            repeat += 1
            name = f"{base} #{repeat}"
        named[name] = item
    return named


def _name_of(item: Any, key: str) -> str:
    for field in key.split(" or "):
        if field in item:
            return str(item[field])
    raise KeyError(f"{item} has no {key}")

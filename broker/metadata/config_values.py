"""What a config is after an operation on it; lists are read and written as Java does."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from klamm.broker.config import tables
from klamm.broker.config.definition import ConfigType, Definition
from klamm.broker.config.errors import shown
from klamm.broker.metadata.image import ResourceType
from klamm.broker.metadata.topics import Refused
from klamm.wire.errors import ErrorCode


class Operation(enum.IntEnum):
    """What is to be done to a config, by its number in IncrementalAlterConfigs requests."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One config of a request; the operation is as it came, and may be none."""

    name: str
    operation: int
    value: str | None


def definition_of_list(resource_type: int, name: str) -> Definition | None:
    """Where a config is a list, to which something can be appended; only topics and brokers have
    such in Kafka."""
    definition = None
    if resource_type == ResourceType.TOPIC:
        definition = tables.topic_definitions().get(name)
    elif resource_type == ResourceType.BROKER:
        definition = tables.find_broker_definition(name)
    return definition if definition and definition.type is ConfigType.LIST else None


def new_value(change: Change, current: str | None, as_list: Definition | None) -> str | None:
    """What a config is after a change; None where it is not set any more."""
    if change.operation == Operation.DELETE:
        return None
    value = change.value
    assert value is not None
    if change.operation == Operation.SET:
        return value
    if as_list is None:
        raise Refused(ErrorCode.INVALID_CONFIG, f"{shown(change.name)} is no list.")
    before = as_list.default if current is None else current
    items = [item for item in split_list(before or "") if item]
    if change.operation == Operation.SUBTRACT:
        return ",".join(without(items, split_list(value)))
    known = set(items)
    return ",".join(
        [*items, *(new for new in dict.fromkeys(split_list(value)) if new not in known)]
    )


def split_list(text: str) -> list[str]:
    """Splits as Java does, which drops what is empty at the end."""
    if "," not in text:
        return [text]
    return text.rstrip(",").split(",") if text.strip(",") else []


def without(items: Iterable[str], removed: Iterable[str]) -> list[str]:
    """Removes as many of each item as are named, the first ones first."""
    left = Counter(removed)
    kept = []
    for item in items:
        if left[item]:
            left[item] -= 1
        else:
            kept.append(item)
    return kept

"""Decisions about configs: pure functions from a request and the image to metadata records.

Kafka decides in two rounds, and so the order of the checks has two parts. The broker that was asked
looks at the form of what is wanted, and at all that is about brokers. The controller then works out
the new values and looks at them, and last at whether there is such a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from klamm.broker.config import ConfigError, ServerConfig
from klamm.broker.config.dynamic import applicable, check_changeable, check_step
from klamm.broker.config.errors import shown
from klamm.broker.metadata.config_rules import check_configs, check_level
from klamm.broker.metadata.config_values import (
    Change,
    Operation,
    definition_of_list,
    new_value,
)
from klamm.broker.metadata.image import MetadataImage, ResourceType
from klamm.broker.metadata.resources import check_broker_id
from klamm.broker.metadata.topics import RECORDS_PER_REQUEST_MAX, Refused
from klamm.broker.steps import Stepwise, collect, count, gather, let_go
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.stored.metadata import ConfigRecord

# Characters of one value, as in Kafka: a record of the metadata log holds no longer text.
VALUE_LENGTH_MAX = 32_767
# Settings that one broker, or all of them together, may have at run time, unknown ones included.
BROKER_CONFIGS_MAX = 500
RESOURCE_TYPES = frozenset(ResourceType)
# It decides what is committed, so all brokers have the same one (KIP-966).
SAME_FOR_ALL_BROKERS = "min.insync.replicas"


class Alteration(NamedTuple):
    """What a request wants of one resource.

    Attributes:
        replaces_all: configs that are not named go (AlterConfigs).
    """

    resource_type: int
    resource_name: str
    changes: Sequence[Change]
    replaces_all: bool = False


def read_alterations(
    resources: Iterable[Any], change: Callable[[Any], Change], *, replaces_all: bool = False
) -> Stepwise[list[Alteration]]:
    """The resources of a request; both APIs have the same fields.

    Args:
        change: reads one config.
    """
    alterations = []
    for resource in resources:
        yield None
        changes = yield from collect(map(change, resource.configs))
        kind, name = resource.resource_type, resource.resource_name
        alterations.append(Alteration(kind, name, changes, replaces_all))
    return alterations


class ConfigPlan:
    """What of a request is done.

    Attributes:
        records: to be committed together.
        levels: of loggers; None where a logger gets back that of the one above.
        server: the settings of this broker as they will be.
        altered: the resources that the records change.
    """

    def __init__(self, image: MetadataImage, server: ServerConfig, node_id: int) -> None:
        self._image = image
        self._node_id = node_id
        self._before = server
        self.server = server
        self.records: list[ConfigRecord] = []
        self.levels: dict[str, str | None] = {}
        self.altered: list[tuple[int, str]] = []

    def decide(self, alterations: Sequence[Alteration]) -> Stepwise[list[Refused | None]]:
        """Returns for each resource why it is not altered, or None where it is."""
        mentions = yield from count(
            (each.resource_type, each.resource_name) for each in alterations
        )
        outcomes: list[Refused | None] = []
        for alteration in alterations:
            yield None
            try:
                if mentions[alteration.resource_type, alteration.resource_name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "The resource is named twice.")
                yield from check_form(alteration)
                if alteration.resource_type == ResourceType.BROKER_LOGGER:
                    self._alter_levels(alteration)
                else:
                    yield from self._alter(alteration)
            except Refused as refused:
                # Without the frames that it was raised in, and all that they hold.
                outcomes.append(Refused(refused.code, refused.message))
            else:
                outcomes.append(None)
        if len(self.records) > RECORDS_PER_REQUEST_MAX:
            return (yield from self._too_many(alterations, outcomes))
        return outcomes

    def _too_many(
        self, alterations: Sequence[Alteration], outcomes: Sequence[Refused | None]
    ) -> Stepwise[list[Refused | None]]:
        """Nothing is stored of a request that would change too much; what was refused before that
        came to light is refused for its own reason."""
        self.server = self._before
        yield from let_go(self.records)
        self.altered.clear()
        refused = too_many_records()
        instead = (
            refused
            if outcome is None and alteration.resource_type != ResourceType.BROKER_LOGGER
            else outcome
            for alteration, outcome in zip(alterations, outcomes, strict=True)
        )
        return (yield from collect(instead))

    def _alter_levels(self, alteration: Alteration) -> None:
        if alteration.replaces_all:
            raise unknown_type(alteration)
        check_broker_id(alteration.resource_name, self._node_id)
        levels: dict[str, str | None] = {}
        for change in alteration.changes:
            level = None if change.operation == Operation.DELETE else change.value
            if change.operation in (Operation.APPEND, Operation.SUBTRACT):
                raise Refused(ErrorCode.INVALID_REQUEST, "A level is no list.")
            check_level(change.name, level)
            levels[change.name] = level
        self.levels.update(levels)

    def _alter(self, alteration: Alteration) -> Stepwise[None]:
        kind, name = alteration.resource_type, alteration.resource_name
        if kind == ResourceType.BROKER and name:
            check_broker_id(name, self._node_id)
        if kind == ResourceType.BROKER and len(alteration.changes) > RECORDS_PER_REQUEST_MAX:
            # What is said of a broker is always written.
            raise too_many_records()
        current = self._image.resource_configs(kind, name)
        records: list[ConfigRecord] = []
        try:
            yield from add_records(records, alteration, current)
            yield from self._check(alteration, current, records)
        except Refused:
            yield from let_go(records)
            raise
        self.records += records
        if records:
            self.altered.append((kind, name))

    def _check(
        self, alteration: Alteration, current: Mapping[str, str], records: Sequence[ConfigRecord]
    ) -> Stepwise[None]:
        kind, name = alteration.resource_type, alteration.resource_name
        if kind == ResourceType.BROKER:
            server = yield from self._reconfigured(name, current, records)
            check_shared_by_brokers(records)
            yield from check_lengths(records)
            self.server = server
        else:
            yield from check_lengths(records)
            configs = yield from with_changes(current, records)
            check_configs(kind, name, configs, self.server, self._image)

    def _reconfigured(
        self, name: str, current: Mapping[str, str], records: Sequence[ConfigRecord]
    ) -> Stepwise[ServerConfig]:
        """The settings of this broker with a change, which may be in one of two layers."""
        per_broker = bool(name)
        given = yield from gather(record.name for record in records if record.value is not None)
        if len(given | current.keys()) > BROKER_CONFIGS_MAX:
            raise Refused(
                ErrorCode.POLICY_VIOLATION,
                f"At most {BROKER_CONFIGS_MAX} settings can be set at run time.",
            )
        wanted = yield from with_changes(applicable(current, per_broker=per_broker), records)
        layers = self.server.layers
        try:
            check_changeable(given, per_broker=per_broker)
            yield None
            if per_broker:
                after = self.server.with_dynamic(layers.dynamic_default, wanted)
            else:
                after = self.server.with_dynamic(wanted, layers.dynamic_broker)
            yield None
            check_step(self.server, after)
        except ConfigError as error:
            raise Refused(ErrorCode.INVALID_REQUEST, str(error)) from None
        # Any other way to write the id is another resource, which nobody reads.
        return after if name in ("", str(self._node_id)) else self.server


def with_stored(server: ServerConfig, image: MetadataImage) -> ServerConfig:
    """The settings of a broker at its start: with what was set at run time before.

    Raises:
        ConfigError: it contradicts what the broker is started with now.
    """
    return server.with_dynamic(
        applicable(image.broker_configs(""), per_broker=False),
        applicable(image.broker_configs(str(server.node_id)), per_broker=True),
    )


def check_form(alteration: Alteration) -> Stepwise[None]:
    """What can be seen of a request without looking at anything else."""
    names = set()
    operations = set()
    lacks_value = False
    for change in alteration.changes:
        yield None
        names.add(change.name)
        operations.add(change.operation)
        if change.value is None and change.operation != Operation.DELETE:
            lacks_value = True
    if len(names) < len(alteration.changes):
        raise Refused(ErrorCode.INVALID_REQUEST, "A config is named twice.")
    if lacks_value:
        raise Refused(ErrorCode.INVALID_REQUEST, "A config has no value; delete it instead.")
    if alteration.resource_type not in RESOURCE_TYPES:
        raise unknown_type(alteration)
    if not operations.issubset(Operation):
        unknown = ", ".join(str(each) for each in sorted(operations.difference(Operation)))
        raise Refused(ErrorCode.INVALID_REQUEST, f"There is no operation {unknown}.")


def too_many_records() -> Refused:
    return Refused(
        ErrorCode.POLICY_VIOLATION,
        f"One request may change at most {RECORDS_PER_REQUEST_MAX} configs.",
    )


def unknown_type(alteration: Alteration) -> Refused:
    return Refused(
        ErrorCode.INVALID_REQUEST,
        f"Configs of type {alteration.resource_type} can't be altered by this request.",
    )


def add_records(
    records: list[ConfigRecord], alteration: Alteration, current: Mapping[str, str]
) -> Stepwise[None]:
    """Add the records that make an alteration, before anything of it was checked.

    What is said of a broker is written even if it is so already: a broker may read files again for
    which only the name is a setting.
    """
    kind = alteration.resource_type
    record = partial(ConfigRecord, resource_type=kind, resource_name=alteration.resource_name)
    for change in alteration.changes:
        yield None
        before = current.get(change.name)
        value = new_value(change, before, definition_of_list(kind, change.name))
        if value != before or kind == ResourceType.BROKER:
            records.append(record(name=change.name, value=value))
    if alteration.replaces_all:
        named = yield from gather(change.name for change in alteration.changes)
        for name in current.keys() - named:
            yield None
            records.append(record(name=name, value=None))


def with_changes(
    current: Mapping[str, str], records: Iterable[ConfigRecord]
) -> Stepwise[dict[str, str]]:
    configs = dict(current)
    for record in records:
        yield None
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
    return configs


def check_shared_by_brokers(records: Iterable[ConfigRecord]) -> None:
    for record in records:
        if record.name == SAME_FOR_ALL_BROKERS:
            if record.resource_name:
                problem = "is the same for all brokers; set it for all of them"
            elif record.value is None:
                problem = "is agreed on by all brokers; set it to another value instead"
            else:
                continue
            raise Refused(ErrorCode.INVALID_CONFIG, f"{SAME_FOR_ALL_BROKERS} {problem}.")


def check_lengths(records: Iterable[ConfigRecord]) -> Stepwise[None]:
    for record in records:
        yield None
        if record.value is not None and len(record.value) > VALUE_LENGTH_MAX:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                f"{shown(record.name)} would have more than {VALUE_LENGTH_MAX} characters.",
            )

"""docs/configuration.md, written from the tables so that it is never behind them.

python -m klamm.broker.config.page > docs/configuration.md
"""

from collections.abc import Iterable, Iterator

from klamm.broker.config import tables
from klamm.broker.config.definition import Definition

_INTRODUCTION = """\
# Configuration

<!-- Written by `python -m klamm.broker.config.page`; a test compares it with the tables. -->

klamm takes the settings of Apache Kafka 4.3 under their own names, so the `server.properties` of a
single node without TLS and authentication works here, too:

    klamm serve --config server.properties --set num.partitions=3

`--set` wins over the file, and so does `--data-dir DIR`, which stands for `log.dirs`.
`--listen HOST:PORT` stands for `listeners`, and is refused beside it. A name that neither Kafka nor
klamm knows is an error, because a misspelt setting would be ignored in silence; so is a value that
klamm cannot honour where ignoring it would do harm. Everything else that klamm does not use is
accepted and says so below and in the documentation that DescribeConfigs returns.
`listener.name.NAME.` before a setting of TLS or SASL sets it for one listener; `rsm.config.` and
`rlmm.config.` begin the settings of Kafka's plug-ins.

A topic that does not set a config follows the broker: `retention.ms` follows `log.retention.ms`,
that `log.retention.minutes`, and that `log.retention.hours`; the finest unit that is set counts.

What Kafka can change while it runs, klamm can, by `kafka-configs` or any admin client: all configs
of topics, groups and client metrics, and those settings of brokers that DescribeConfigs does not
call read-only. What is set for one broker comes before what is set for all brokers, that before the
file, that before the default. A change is kept over restarts and may be taken back.
"""


def page() -> str:
    """Returns the whole page."""
    return "\n".join([_INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    broker = tables.broker_definitions().values()
    yield from _section("klamm's own settings", "Apache Kafka does not have them.")
    yield from _settings(definition for definition in broker if definition.klamm_own)
    yield from _section("Defaults that differ from Apache Kafka's")
    yield from _differences(broker)
    yield from _section("Settings of which klamm supports one value", "It refuses all others.")
    yield from _supported([*broker, *tables.topic_definitions().values()])
    yield from _section("Broker settings that klamm uses")
    yield from _settings(
        definition
        for definition in broker
        if not (definition.ignored or definition.klamm_own or definition.supported)
    )
    yield from _section("Topic configs")
    yield from _settings(tables.topic_definitions().values())
    yield from _section("Broker settings that klamm accepts and ignores")
    yield from _ignored(broker)
    yield from _section("Group configs")
    yield from _settings(tables.group_definitions().values())
    yield from _section("Client metrics configs")
    yield from _settings(tables.client_metrics_definitions().values())


def _section(title: str, text: str = "") -> Iterator[str]:
    yield f"## {title}\n"
    if text:
        yield f"{text}\n"


def _settings(definitions: Iterable[Definition]) -> Iterator[str]:
    yield from _table(
        ("Name", "Type", "Default", "Values", "Meaning"),
        (
            (
                _code(definition.name),
                definition.type.name.lower(),
                _code(definition.default),
                definition.valid.describe() if definition.valid is not None else "",
                definition.documentation,
            )
            for definition in _by_name(definitions)
        ),
    )


def _differences(definitions: Iterable[Definition]) -> Iterator[str]:
    yield from _table(
        ("Name", "klamm", "Apache Kafka", "Why"),
        (
            (
                _code(definition.name),
                _code(definition.default),
                _code(definition.difference.kafka_default),
                definition.difference.reason,
            )
            for definition in _by_name(definitions)
            if definition.difference is not None
        ),
    )


def _supported(definitions: Iterable[Definition]) -> Iterator[str]:
    yield from _table(
        ("Name", "Supported", "Meaning"),
        (
            (
                _code(definition.name),
                " or ".join(map(_code, definition.supported)) or "not set",
                definition.documentation,
            )
            for definition in _by_name(definitions)
            if definition.supported is not None
        ),
    )


def _ignored(definitions: Iterable[Definition]) -> Iterator[str]:
    """By reason, the one that holds for most settings first."""
    reasons: dict[str, list[str]] = {}
    for definition in _by_name(definitions):
        if definition.ignored is not None:
            reasons.setdefault(definition.ignored, []).append(_code(definition.name))
    yield from _table(
        ("Why", "Names"),
        (
            (reason, ", ".join(names))
            for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
        ),
    )


def _by_name(definitions: Iterable[Definition]) -> list[Definition]:
    return sorted(definitions, key=lambda definition: definition.name)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _row(header)
    yield _row(("---",) * len(header))
    for row in rows:
        yield _row(row)
    yield ""


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    print(page(), end="")

"""Which broker settings stand behind a topic config, and which name the same thing twice.

A topic that sets nothing follows the broker; the broker may say it in several units, of which the
finest one that is set counts (`log.retention.ms` before `.minutes` before `.hours`).
"""

from typing import NamedTuple

HOUR_MS = 60 * 60 * 1000
MINUTE_MS = 60 * 1000


class Synonym(NamedTuple):
    """A broker setting, and the factor that turns its unit into that of the topic config."""

    name: str
    factor: int = 1


def _same(*names: str) -> dict[str, tuple[Synonym, ...]]:
    return {name: (Synonym(name),) for name in names}


def _with_prefix(prefix: str, *names: str) -> dict[str, tuple[Synonym, ...]]:
    return {name: (Synonym(prefix + name),) for name in names}


TOPIC_SYNONYMS: dict[str, tuple[Synonym, ...]] = {
    **_same(
        "unclean.leader.election.enable",
        "min.insync.replicas",
        "compression.type",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "flush.before.ack",
    ),
    **_with_prefix(
        "log.",
        "segment.bytes",
        "retention.bytes",
        "index.interval.bytes",
        "cleanup.policy",
        "preallocate",
        "message.timestamp.type",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "local.retention.ms",
        "local.retention.bytes",
    ),
    **_with_prefix(
        "log.cleaner.", "delete.retention.ms", "min.compaction.lag.ms", "max.compaction.lag.ms"
    ),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
    "segment.jitter.ms": (
        Synonym("log.roll.jitter.ms"),
        Synonym("log.roll.jitter.hours", HOUR_MS),
    ),
    "segment.index.bytes": (Synonym("log.index.size.max.bytes"),),
    "flush.messages": (Synonym("log.flush.interval.messages"),),
    "flush.ms": (
        Synonym("log.flush.interval.ms"),
        Synonym("log.flush.scheduler.interval.ms"),
    ),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", MINUTE_MS),
        Synonym("log.retention.hours", HOUR_MS),
    ),
    "max.message.bytes": (Synonym("message.max.bytes"),),
    "file.delete.delay.ms": (Synonym("log.segment.delete.delay.ms"),),
    "min.cleanable.dirty.ratio": (Synonym("log.cleaner.min.cleanable.ratio"),),
}

_SAME_THING = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Returns the broker settings that stand for the same thing as `name`, finest first."""
    if name == "log.flush.interval.ms":
        # One way only: the scheduler interval is its default and is not replaced by it.
        return ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    for names in _SAME_THING:
        if name in names:
            return names
    return (name,)

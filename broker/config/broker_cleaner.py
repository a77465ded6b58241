"""Compaction."""

from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.validators import at_least, between

ONE = "one thread compacts; more would only take turns with it."
BUFFER = "batches are read one by one."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "log.cleaner.threads",
        ConfigType.INT,
        "1",
        "Threads that compact.",
        ignored=ONE,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.io.max.bytes.per.second",
        ConfigType.DOUBLE,
        "1.7976931348623157E308",
        "Rate limit for the bytes that compaction reads and writes.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.dedupe.buffer.size",
        ConfigType.LONG,
        "134217728",
        "Memory for the map of keys of a compaction pass.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.io.buffer.size",
        ConfigType.INT,
        "524288",
        "Memory for the read and write buffers of compaction.",
        ignored=BUFFER,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.io.buffer.load.factor",
        ConfigType.DOUBLE,
        "0.9",
        "How full the map of keys may get.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.backoff.ms",
        ConfigType.LONG,
        "15000",
        "Pause when there is nothing to compact.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.min.cleanable.ratio",
        ConfigType.DOUBLE,
        "0.5",
        "Share of uncompacted bytes from which a log is compacted.",
        valid=between(0, 1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether compacted topics are compacted.",
    ),
    Definition(
        "log.cleaner.delete.retention.ms",
        ConfigType.LONG,
        "86400000",
        "Time for which a tombstone stays readable after compaction.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.min.compaction.lag.ms",
        ConfigType.LONG,
        "0",
        "Time for which a new record is not compacted.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.cleaner.max.compaction.lag.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "Time after which a record must have become eligible for compaction.",
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
)

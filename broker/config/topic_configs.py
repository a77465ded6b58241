"""Topic configs: what one topic may set for itself."""

from klamm.broker.config.definition import ConfigType, Definition
from klamm.broker.config.validators import (
    GZIP_LEVEL,
    THROTTLED_REPLICAS,
    ListOf,
    at_least,
    between,
    one_of,
)

PREALLOCATE = "klamm lets files grow as they are written."
TIER = "klamm has no tiered storage."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "segment.bytes",
        ConfigType.INT,
        "1073741824",
        "Size at which a segment is closed and the next one begun.",
        valid=at_least(1048576),
    ),
    Definition(
        "segment.ms",
        ConfigType.LONG,
        "604800000",
        "Age at which a segment is closed even if it is not full.",
        valid=at_least(1),
    ),
    Definition(
        "segment.jitter.ms",
        ConfigType.LONG,
        "0",
        "Most random time taken off segment.ms, so that segments do not close all at once.",
        valid=at_least(0),
    ),
    Definition(
        "segment.index.bytes",
        ConfigType.INT,
        "10485760",
        "Largest offset index of a segment.",
        valid=at_least(4),
    ),
    Definition(
        "flush.messages",
        ConfigType.LONG,
        "9223372036854775807",
        "Records after which a partition is synced to disk.",
        valid=at_least(1),
    ),
    Definition(
        "flush.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "Time after which unsynced records are synced to disk.",
        valid=at_least(0),
    ),
    Definition(
        "retention.bytes",
        ConfigType.LONG,
        "-1",
        "Size of a partition above which its oldest segments are deleted, -1 for no bound.",
    ),
    Definition(
        "retention.ms",
        ConfigType.LONG,
        "604800000",
        "Time for which closed segments are kept, -1 for ever.",
        valid=at_least(-1),
    ),
    Definition(
        "max.message.bytes",
        ConfigType.INT,
        "1048588",
        "Largest record batch, in bytes after compression, that the topic accepts.",
        valid=at_least(0),
    ),
    Definition(
        "index.interval.bytes",
        ConfigType.INT,
        "4096",
        "Bytes of records between two entries of the offset index.",
        valid=at_least(0),
    ),
    Definition(
        "delete.retention.ms",
        ConfigType.LONG,
        "86400000",
        "Time for which a tombstone stays readable after compaction.",
        valid=at_least(0),
    ),
    Definition(
        "min.compaction.lag.ms",
        ConfigType.LONG,
        "0",
        "Time for which a new record is not compacted.",
        valid=at_least(0),
    ),
    Definition(
        "max.compaction.lag.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "Time after which a record must have become eligible for compaction.",
        valid=at_least(1),
    ),
    Definition(
        "file.delete.delay.ms",
        ConfigType.LONG,
        "60000",
        "Pause between taking a file out of a log and removing it.",
        valid=at_least(0),
    ),
    Definition(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        "0.5",
        "Share of uncompacted bytes from which the log is compacted.",
        valid=between(0, 1),
    ),
    Definition(
        "cleanup.policy",
        ConfigType.LIST,
        "delete",
        "What happens to old data: delete, compact, or both.",
        valid=ListOf(("compact", "delete")),
    ),
    Definition(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        "false",
        (
            "Whether a replica outside the in-sync set may become leader, at the price of lost "
            "records."
        ),
        ignored="a klamm broker has no followers.",
    ),
    Definition(
        "min.insync.replicas",
        ConfigType.INT,
        "1",
        "In-sync replicas that a write with acks=all needs.",
        valid=at_least(1),
    ),
    Definition(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "Codec in which batches are stored; producer keeps what the producer chose.",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    Definition(
        "compression.gzip.level",
        ConfigType.INT,
        "-1",
        "Level used when the broker compresses with gzip; -1 is the library's default.",
        valid=GZIP_LEVEL,
    ),
    Definition(
        "compression.lz4.level",
        ConfigType.INT,
        "9",
        "Level used when the broker compresses with lz4.",
        valid=between(1, 17),
    ),
    Definition(
        "compression.zstd.level",
        ConfigType.INT,
        "3",
        "Level used when the broker compresses with zstd.",
        valid=between(-131072, 22),
    ),
    Definition(
        "preallocate",
        ConfigType.BOOLEAN,
        "false",
        "Whether the file of a new segment is given its full size at once.",
        ignored=PREALLOCATE,
    ),
    Definition(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        (
            "Whether records keep the producer's time (CreateTime) or get the broker's "
            "(LogAppendTime)."
        ),
        valid=one_of("CreateTime", "LogAppendTime"),
    ),
    Definition(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "How far a record's timestamp may lie before the broker's clock.",
        valid=at_least(0),
    ),
    Definition(
        "message.timestamp.after.max.ms",
        ConfigType.LONG,
        "3600000",
        "How far a record's timestamp may lie after the broker's clock.",
        valid=at_least(0),
    ),
    Definition(
        "leader.replication.throttled.replicas",
        ConfigType.LIST,
        "",
        "Replicas whose leaders send at a bounded rate.",
        ignored="a klamm broker has no followers.",
        valid=THROTTLED_REPLICAS,
    ),
    Definition(
        "follower.replication.throttled.replicas",
        ConfigType.LIST,
        "",
        "Replicas whose followers read at a bounded rate.",
        ignored="a klamm broker has no followers.",
        valid=THROTTLED_REPLICAS,
    ),
    Definition(
        "remote.storage.enable",
        ConfigType.BOOLEAN,
        "false",
        (
            "Whether old segments of the topic may be moved to a remote store; only false is "
            "supported."
        ),
        supported=("false",),
    ),
    Definition(
        "local.retention.ms",
        ConfigType.LONG,
        "-2",
        (
            "Time that a segment stays on the local disk once it is in the remote store; -2 "
            "follows retention.ms."
        ),
        ignored=TIER,
        valid=at_least(-2),
    ),
    Definition(
        "local.retention.bytes",
        ConfigType.LONG,
        "-2",
        (
            "Bytes of a partition that stay on the local disk once they are in the remote store; "
            "-2 follows retention.bytes."
        ),
        ignored=TIER,
        valid=at_least(-2),
    ),
    Definition(
        "remote.log.copy.disable",
        ConfigType.BOOLEAN,
        "false",
        "Whether copying to the remote store is stopped.",
        ignored=TIER,
    ),
    Definition(
        "remote.log.delete.on.disable",
        ConfigType.BOOLEAN,
        "false",
        "Whether remote data is deleted when the remote store is switched off.",
        ignored=TIER,
    ),
    Definition(
        "internal.segment.bytes",
        ConfigType.INT,
        None,
        "Segment size below the usual minimum, for tests; it takes the place of segment.bytes.",
        internal=True,
    ),
    Definition(
        "flush.before.ack",
        ConfigType.BOOLEAN,
        "true",
        (
            "Whether a write with acks=all is synced to disk before it is acknowledged; false "
            "gives Kafka's behaviour, which trusts the page cache."
        ),
        klamm_own=True,
    ),
)

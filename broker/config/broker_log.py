"""Topics, log directories, segments, retention and flushing."""

from klamm.broker.config.definition import ConfigType, Definition, Difference, Update
from klamm.broker.config.validators import ListOf, at_least, one_of

PREALLOCATE = "klamm lets files grow as they are written."
CHECKPOINT = (
    "klamm writes all its checkpoints together, every "
    "replica.high.watermark.checkpoint.interval.ms."
)

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "num.partitions",
        ConfigType.INT,
        "1",
        "Partitions of a topic that is created without a number of its own.",
        valid=at_least(1),
    ),
    Definition(
        "log.dir",
        ConfigType.LIST,
        "/tmp/klamm-logs",
        "Data directory; used only when log.dirs is not set.",
        valid=ListOf(may_be_empty=False),
        difference=Difference(
            "/tmp/kafka-logs",
            (
                "A klamm without options must not write into the directory of a Kafka without "
                "options."
            ),
        ),
    ),
    Definition(
        "log.dirs",
        ConfigType.LIST,
        None,
        "Data directories, separated by commas; without it log.dir.",
        valid=ListOf(may_be_empty=False),
    ),
    Definition(
        "cordoned.log.dirs",
        ConfigType.LIST,
        "",
        "Log directories that get no new partitions.",
        valid=ListOf(),
        update=Update.PER_BROKER,
    ),
    Definition(
        "log.segment.bytes",
        ConfigType.INT,
        "1073741824",
        "Size at which a segment is closed and the next one begun.",
        valid=at_least(1048576),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.roll.ms",
        ConfigType.LONG,
        None,
        "Age at which a segment is closed even if it is not full; without it log.roll.hours.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.roll.hours",
        ConfigType.INT,
        "168",
        "As log.roll.ms, in hours.",
        valid=at_least(1),
    ),
    Definition(
        "log.roll.jitter.ms",
        ConfigType.LONG,
        None,
        (
            "Most random time taken off log.roll.ms, so that segments do not close all at once; "
            "without it log.roll.jitter.hours."
        ),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.roll.jitter.hours",
        ConfigType.INT,
        "0",
        "As log.roll.jitter.ms, in hours.",
        valid=at_least(0),
    ),
    Definition(
        "log.retention.ms",
        ConfigType.LONG,
        None,
        ("Time for which closed segments are kept, -1 for ever; without it log.retention.minutes."),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.retention.minutes",
        ConfigType.INT,
        None,
        "As log.retention.ms, in minutes; without it log.retention.hours.",
    ),
    Definition(
        "log.retention.hours",
        ConfigType.INT,
        "168",
        "As log.retention.ms, in hours.",
    ),
    Definition(
        "log.retention.bytes",
        ConfigType.LONG,
        "-1",
        "Size of a partition above which its oldest segments are deleted, -1 for no bound.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.retention.check.interval.ms",
        ConfigType.LONG,
        "300000",
        "Pause between two looks for segments that may go.",
        valid=at_least(1),
    ),
    Definition(
        "log.cleanup.policy",
        ConfigType.LIST,
        "delete",
        "What happens to old data: delete, compact, or both.",
        valid=ListOf(("compact", "delete")),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.index.size.max.bytes",
        ConfigType.INT,
        "10485760",
        "Largest offset index of a segment.",
        valid=at_least(4),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.index.interval.bytes",
        ConfigType.INT,
        "4096",
        "Bytes of records between two entries of the offset index.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.flush.interval.messages",
        ConfigType.LONG,
        "9223372036854775807",
        "Records after which a partition is synced to disk.",
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.segment.delete.delay.ms",
        ConfigType.LONG,
        "60000",
        "Pause between taking a segment out of a log and removing its file.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.flush.scheduler.interval.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "Used for log.flush.interval.ms where that is not set.",
    ),
    Definition(
        "log.flush.interval.ms",
        ConfigType.LONG,
        None,
        (
            "Time after which unsynced records are synced to disk; without it "
            "log.flush.scheduler.interval.ms."
        ),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.flush.offset.checkpoint.interval.ms",
        ConfigType.INT,
        "60000",
        "Pause between two writes of the recovery points.",
        ignored=CHECKPOINT,
        valid=at_least(0),
    ),
    Definition(
        "log.flush.start.offset.checkpoint.interval.ms",
        ConfigType.INT,
        "60000",
        "Pause between two writes of the log start offsets.",
        ignored=CHECKPOINT,
        valid=at_least(0),
    ),
    Definition(
        "log.preallocate",
        ConfigType.BOOLEAN,
        "false",
        "Whether the file of a new segment is given its full size at once.",
        ignored=PREALLOCATE,
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "num.recovery.threads.per.data.dir",
        ConfigType.INT,
        "2",
        "Threads that load logs at the start and sync them at the end.",
        ignored="klamm loads its logs one after the other.",
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "auto.create.topics.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether asking for a topic that does not exist creates it.",
    ),
    Definition(
        "min.insync.replicas",
        ConfigType.INT,
        "1",
        "In-sync replicas that a write with acks=all needs.",
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        (
            "Whether records keep the producer's time (CreateTime) or get the broker's "
            "(LogAppendTime)."
        ),
        valid=one_of("CreateTime", "LogAppendTime"),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.message.timestamp.before.max.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "How far a record's timestamp may lie before the broker's clock.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "log.message.timestamp.after.max.ms",
        ConfigType.LONG,
        "3600000",
        "How far a record's timestamp may lie after the broker's clock.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "create.topic.policy.class.name",
        ConfigType.CLASS,
        None,
        (
            "Class that checks new topics; only the empty value is supported, because klamm would "
            "not ask it."
        ),
        supported=("",),
    ),
    Definition(
        "alter.config.policy.class.name",
        ConfigType.CLASS,
        None,
        (
            "Class that checks changed configs; only the empty value is supported, because klamm "
            "would not ask it."
        ),
        supported=("",),
    ),
    Definition(
        "log.dir.failure.timeout.ms",
        ConfigType.LONG,
        "30000",
        "Time after which a broker stops that cannot report a failed log directory.",
        ignored="klamm is its own controller.",
        valid=at_least(1),
    ),
    Definition(
        "log.initial.task.delay.ms",
        ConfigType.LONG,
        "30000",
        "Pause after the start before the first look for old segments.",
        valid=at_least(0),
        internal=True,
    ),
)

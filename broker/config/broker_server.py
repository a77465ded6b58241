"""General settings of the broker."""

from klamm.broker.config.definition import ConfigType, Definition, Difference, Update
from klamm.broker.config.validators import GZIP_LEVEL, ListOf, at_least, between, one_of

THREADS = "klamm answers requests on one event loop and bounds its own worker threads."
OUT = "klamm opens no connection to another broker."
STABLE = "klamm serves the stable versions of each API."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "broker.id",
        ConfigType.INT,
        "1",
        "Older name of node.id; it always shows the same number.",
        difference=Difference("-1", "It is node.id under another name, whose default is 1."),
    ),
    Definition(
        "message.max.bytes",
        ConfigType.INT,
        "1048588",
        (
            "Largest record batch, in bytes after compression, that a topic accepts unless it "
            "sets max.message.bytes."
        ),
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "num.io.threads",
        ConfigType.INT,
        "8",
        "Threads that work on requests.",
        ignored=THREADS,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "num.replica.alter.log.dirs.threads",
        ConfigType.INT,
        None,
        "Threads that move partitions between log directories.",
        ignored=THREADS,
    ),
    Definition(
        "background.threads",
        ConfigType.INT,
        "10",
        "Threads for background work.",
        ignored=THREADS,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "request.timeout.ms",
        ConfigType.INT,
        "30000",
        "Longest wait for the answer to a request that the broker itself sends.",
        ignored=OUT,
    ),
    Definition(
        "socket.connection.setup.timeout.ms",
        ConfigType.LONG,
        "10000",
        "First time limit for opening a connection to another broker.",
        ignored=OUT,
    ),
    Definition(
        "socket.connection.setup.timeout.max.ms",
        ConfigType.LONG,
        "30000",
        "Longest time limit for opening a connection to another broker.",
        ignored=OUT,
    ),
    Definition(
        "config.providers",
        ConfigType.LIST,
        "",
        (
            "Names of plug-ins that replace placeholders in this file; only the empty list is "
            "supported, because a placeholder would be taken as its own value."
        ),
        valid=ListOf(),
        update=Update.CLUSTER_WIDE,
        supported=("",),
    ),
    Definition(
        "authorizer.class.name",
        ConfigType.STRING,
        "",
        (
            "Class that decides who may do what; only the empty value is supported, because klamm "
            "would not ask it."
        ),
        supported=("",),
    ),
    Definition(
        "early.start.listeners",
        ConfigType.LIST,
        None,
        "Listeners that open before the authorizer is ready.",
        ignored="klamm opens all its listeners at once.",
        valid=ListOf(),
    ),
    Definition(
        "broker.rack",
        ConfigType.STRING,
        None,
        "Name of the rack of this broker, told to clients in Metadata and DescribeCluster.",
    ),
    Definition(
        "controlled.shutdown.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether partitions are handed to other brokers before a shutdown.",
        ignored=(
            "klamm always shuts down cleanly on SIGTERM, and has no other broker to hand "
            "partitions to."
        ),
    ),
    Definition(
        "delete.topic.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether topics may be deleted by clients.",
    ),
    Definition(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "Codec in which batches are stored; producer keeps what the producer chose.",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "compression.gzip.level",
        ConfigType.INT,
        "-1",
        "Level used when the broker compresses with gzip; -1 is the library's default.",
        valid=GZIP_LEVEL,
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "compression.lz4.level",
        ConfigType.INT,
        "9",
        "Level used when the broker compresses with lz4.",
        valid=between(1, 17),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "compression.zstd.level",
        ConfigType.INT,
        "3",
        "Level used when the broker compresses with zstd.",
        valid=between(-131072, 22),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "max.incremental.fetch.session.cache.slots",
        ConfigType.INT,
        "1000",
        "Fetch sessions that the broker keeps; further clients fetch without a session.",
        valid=at_least(0),
    ),
    Definition(
        "fetch.max.bytes",
        ConfigType.INT,
        "57671680",
        "Most bytes of records in one Fetch response, whatever the client asks for.",
        valid=at_least(1024),
    ),
    Definition(
        "max.request.partition.size.limit",
        ConfigType.INT,
        "2000",
        "Most partitions in one DescribeTopicPartitions response; the rest follows by cursor.",
        valid=at_least(1),
    ),
    Definition(
        "unstable.api.versions.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether unreleased API versions are served.",
        ignored=STABLE,
        internal=True,
    ),
    Definition(
        "unstable.feature.versions.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether unreleased feature levels may be set.",
        ignored=STABLE,
        internal=True,
    ),
)

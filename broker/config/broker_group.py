"""Consumer groups: the classic and the new protocol."""

from klamm.broker.config.definition import ConfigType, Definition, Difference, Update
from klamm.broker.config.validators import ListOf, OneOf, at_least, between

COORD = "klamm runs its coordinators on the event loop."
AT_ONCE = "klamm writes each change at once, and one sync serves all that wait for it."
ONE_REPLICA = "There is one replica, and a reply waits for its own disk alone."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "group.coordinator.rebalance.protocols",
        ConfigType.LIST,
        "classic,consumer,streams",
        (
            "Group protocols that are served. The classic one always is; without consumer in the "
            "list, the new one is refused."
        ),
        valid=ListOf(("consumer", "classic", "share", "streams"), may_be_empty=False),
    ),
    Definition(
        "group.coordinator.threads",
        ConfigType.INT,
        "4",
        "Threads that work on groups.",
        ignored=COORD,
        valid=at_least(1),
    ),
    Definition(
        "group.coordinator.background.threads",
        ConfigType.INT,
        "2",
        "Threads for slow group work such as regular expressions.",
        ignored=COORD,
        valid=at_least(1),
    ),
    Definition(
        "group.coordinator.append.linger.ms",
        ConfigType.INT,
        "-1",
        (
            "Pause in which group records are gathered before they are written; -1 adapts to the "
            "load."
        ),
        ignored=AT_ONCE,
        valid=at_least(-1),
    ),
    Definition(
        "offsets.commit.timeout.ms",
        ConfigType.INT,
        "5000",
        "Longest wait until an offset commit is stored on all replicas.",
        ignored=ONE_REPLICA,
        valid=at_least(1),
    ),
    Definition(
        "offsets.load.buffer.size",
        ConfigType.INT,
        "5242880",
        "Bytes read at once when offsets are loaded.",
        valid=at_least(1),
    ),
    Definition(
        "offsets.topic.replication.factor",
        ConfigType.SHORT,
        "1",
        "Replicas of __consumer_offsets, as far as there are brokers for them.",
        valid=at_least(1),
        difference=Difference(
            "3",
            "klamm is one node, and Kafka itself cannot create the topic with 3 there.",
        ),
    ),
    Definition(
        "offsets.topic.num.partitions",
        ConfigType.INT,
        "50",
        "Partitions of __consumer_offsets; it must not change after the first start.",
        valid=at_least(1),
    ),
    Definition(
        "offsets.topic.segment.bytes",
        ConfigType.INT,
        "104857600",
        "Segment size of __consumer_offsets.",
        valid=at_least(1),
    ),
    Definition(
        "offsets.topic.compression.codec",
        ConfigType.INT,
        "0",
        "Codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        valid=between(0, 4),
    ),
    Definition(
        "group.coordinator.cached.buffer.max.bytes",
        ConfigType.INT,
        "1048588",
        "Largest write buffer that the coordinator keeps for later use.",
        ignored=COORD,
        valid=at_least(524288),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "offset.metadata.max.bytes",
        ConfigType.INT,
        "4096",
        "Largest metadata string of an offset commit.",
    ),
    Definition(
        "offsets.retention.minutes",
        ConfigType.INT,
        "10080",
        "Time for which the offsets of an empty group are kept.",
        valid=at_least(1),
    ),
    Definition(
        "offsets.retention.check.interval.ms",
        ConfigType.LONG,
        "600000",
        "Pause between two looks for expired offsets.",
        valid=at_least(1),
    ),
    Definition(
        "group.min.session.timeout.ms",
        ConfigType.INT,
        "6000",
        "Shortest session timeout that a classic member may ask for.",
    ),
    Definition(
        "group.max.session.timeout.ms",
        ConfigType.INT,
        "1800000",
        "Longest session timeout that a classic member may ask for.",
    ),
    Definition(
        "group.initial.rebalance.delay.ms",
        ConfigType.INT,
        "0",
        "Pause before the first rebalance of a new classic group, for more members to come; "
        "5 ms at least.",
        difference=Difference(
            "3000",
            (
                "A consumer starts at once, and members that start together are still one "
                "generation; what a longer delay saves in rebalances is little on one node."
            ),
        ),
    ),
    Definition(
        "group.max.size",
        ConfigType.INT,
        "1000",
        "Most members of a classic group.",
        valid=at_least(1),
        difference=Difference(
            "2147483647",
            (
                "Every limit is finite: the end of a rebalance looks at all members in one step, "
                "and a thousand are looked at before anybody notices."
            ),
        ),
    ),
    Definition(
        "group.consumer.session.timeout.ms",
        ConfigType.INT,
        "45000",
        "Session timeout of consumer group members.",
        valid=at_least(1),
    ),
    Definition(
        "group.consumer.min.session.timeout.ms",
        ConfigType.INT,
        "45000",
        "Shortest session timeout that a consumer group may set.",
        valid=at_least(1),
    ),
    Definition(
        "group.consumer.max.session.timeout.ms",
        ConfigType.INT,
        "60000",
        "Longest session timeout that a consumer group may set.",
        valid=at_least(1),
    ),
    Definition(
        "group.consumer.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        "Heartbeat interval told to consumer group members.",
        valid=at_least(1),
    ),
    Definition(
        "group.consumer.min.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        "Shortest heartbeat interval that a consumer group may set.",
        valid=at_least(1),
    ),
    Definition(
        "group.consumer.max.heartbeat.interval.ms",
        ConfigType.INT,
        "15000",
        "Longest heartbeat interval that a consumer group may set.",
        valid=at_least(1),
    ),
    Definition(
        "group.consumer.max.size",
        ConfigType.INT,
        "1000",
        "Most members of a consumer group.",
        valid=at_least(1),
        difference=Difference(
            "2147483647",
            (
                "Every limit is finite: the end of a rebalance looks at all members in one step, "
                "and a thousand are looked at before anybody notices."
            ),
        ),
    ),
    Definition(
        "group.consumer.assignors",
        ConfigType.LIST,
        "uniform,range",
        "Assignors of consumer groups, the first one being the default.",
        valid=ListOf(("uniform", "range"), may_be_empty=False),
    ),
    Definition(
        "group.consumer.migration.policy",
        ConfigType.STRING,
        "bidirectional",
        (
            "Whether groups may change between the classic and the consumer protocol while they "
            "have members."
        ),
        valid=OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), ignore_case=True),
    ),
    Definition(
        "group.consumer.assignment.interval.ms",
        ConfigType.INT,
        "1000",
        "Shortest time between two assignments of a consumer group.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "group.consumer.min.assignment.interval.ms",
        ConfigType.INT,
        "0",
        "Lower bound for the assignment interval of a consumer group.",
        valid=at_least(0),
    ),
    Definition(
        "group.consumer.max.assignment.interval.ms",
        ConfigType.INT,
        "15000",
        "Upper bound for the assignment interval of a consumer group.",
        valid=at_least(0),
    ),
    Definition(
        "group.consumer.regex.refresh.interval.ms",
        ConfigType.INT,
        "600000",
        "Pause between two evaluations of the regular expressions of a subscription.",
        valid=at_least(10000),
        internal=True,
    ),
)

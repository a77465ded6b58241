"""Replication between brokers."""

from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.validators import at_least, one_of

ALONE = "a klamm broker has no followers."
WAKE = "klamm removes a parked request the moment it is answered."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "controller.socket.timeout.ms",
        ConfigType.INT,
        "30000",
        "Longest wait for an answer of the controller.",
        ignored="klamm is its own controller.",
    ),
    Definition(
        "default.replication.factor",
        ConfigType.INT,
        "1",
        "Replicas of a topic that is created without a number of its own.",
    ),
    Definition(
        "replica.lag.time.max.ms",
        ConfigType.LONG,
        "30000",
        "Time after which a follower that lags leaves the in-sync set.",
        ignored=ALONE,
    ),
    Definition(
        "replica.socket.timeout.ms",
        ConfigType.INT,
        "30000",
        "Longest wait of a follower for its leader.",
        ignored=ALONE,
    ),
    Definition(
        "replica.socket.receive.buffer.bytes",
        ConfigType.INT,
        "65536",
        "Receive buffer of a follower's connection.",
        ignored=ALONE,
    ),
    Definition(
        "replica.fetch.max.bytes",
        ConfigType.INT,
        "1048576",
        "Bytes that a follower asks for per partition.",
        ignored=ALONE,
        valid=at_least(0),
    ),
    Definition(
        "replica.fetch.wait.max.ms",
        ConfigType.INT,
        "500",
        "Longest wait of a follower's fetch.",
        ignored=ALONE,
    ),
    Definition(
        "replica.fetch.backoff.ms",
        ConfigType.INT,
        "1000",
        "Pause of a follower after a failed fetch.",
        ignored=ALONE,
        valid=at_least(0),
    ),
    Definition(
        "replica.fetch.min.bytes",
        ConfigType.INT,
        "1",
        "Bytes for which a follower's fetch waits.",
        ignored=ALONE,
    ),
    Definition(
        "replica.fetch.response.max.bytes",
        ConfigType.INT,
        "10485760",
        "Bytes that a follower asks for in one fetch.",
        ignored=ALONE,
        valid=at_least(0),
    ),
    Definition(
        "num.replica.fetchers",
        ConfigType.INT,
        "1",
        "Connections of a follower to each leader.",
        ignored=ALONE,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "replica.high.watermark.checkpoint.interval.ms",
        ConfigType.LONG,
        "5000",
        "Pause between two writes of high watermarks, recovery points and log starts to disk.",
        valid=at_least(1),
    ),
    Definition(
        "fetch.purgatory.purge.interval.requests",
        ConfigType.INT,
        "1000",
        "Answered fetches after which the waiting room is swept.",
        ignored=WAKE,
    ),
    Definition(
        "producer.purgatory.purge.interval.requests",
        ConfigType.INT,
        "1000",
        "Answered produce requests after which the waiting room is swept.",
        ignored=WAKE,
    ),
    Definition(
        "delete.records.purgatory.purge.interval.requests",
        ConfigType.INT,
        "1",
        "Answered DeleteRecords requests after which the waiting room is swept.",
        ignored=WAKE,
    ),
    Definition(
        "auto.leader.rebalance.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether leadership moves back to the preferred replica by itself.",
        ignored=ALONE,
    ),
    Definition(
        "leader.imbalance.check.interval.seconds",
        ConfigType.LONG,
        "300",
        "Pause between two looks for leaders that are not the preferred ones.",
        ignored=ALONE,
        valid=at_least(1),
    ),
    Definition(
        "unclean.leader.election.interval.ms",
        ConfigType.LONG,
        "300000",
        "Pause between two looks for partitions that need an unclean election.",
        ignored=ALONE,
        valid=at_least(1),
        internal=True,
    ),
    Definition(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        "false",
        (
            "Whether a replica outside the in-sync set may become leader, at the price of lost "
            "records."
        ),
        ignored=ALONE,
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "security.inter.broker.protocol",
        ConfigType.STRING,
        "PLAINTEXT",
        "Security protocol between brokers.",
        ignored=ALONE,
        valid=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Definition(
        "inter.broker.listener.name",
        ConfigType.STRING,
        None,
        "Listener that brokers use among themselves; it must be one of listeners.",
    ),
    Definition(
        "replica.selector.class",
        ConfigType.STRING,
        None,
        "Class that chooses the replica from which a consumer reads.",
        ignored=ALONE,
    ),
    Definition(
        "follower.fetch.last.tiered.offset.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether a new follower starts behind what is in the remote store.",
        ignored=ALONE,
        update=Update.CLUSTER_WIDE,
    ),
)

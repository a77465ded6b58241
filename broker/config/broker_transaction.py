"""Producer ids and transactions."""

from klamm.broker.config.definition import ConfigType, Definition, Difference, Update
from klamm.broker.config.validators import at_least

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "transaction.state.log.min.isr",
        ConfigType.INT,
        "1",
        "In-sync replicas that a write to __transaction_state needs.",
        valid=at_least(1),
        difference=Difference(
            "2",
            "klamm is one node.",
        ),
    ),
    Definition(
        "transaction.state.log.load.buffer.size",
        ConfigType.INT,
        "5242880",
        "Bytes read at once when transactions are loaded.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.state.log.replication.factor",
        ConfigType.SHORT,
        "1",
        "Replicas of __transaction_state.",
        valid=at_least(1),
        difference=Difference(
            "3",
            "klamm is one node, and Kafka itself cannot create the topic with 3 there.",
        ),
    ),
    Definition(
        "transaction.state.log.num.partitions",
        ConfigType.INT,
        "50",
        "Partitions of __transaction_state; it must not change after the first start.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.state.log.segment.bytes",
        ConfigType.INT,
        "104857600",
        "Segment size of __transaction_state.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.partition.verification.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether a write is checked against its transaction.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "producer.id.expiration.ms",
        ConfigType.INT,
        "86400000",
        "Time after which the sequence numbers of an idle producer are forgotten.",
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "producer.id.expiration.check.interval.ms",
        ConfigType.INT,
        "600000",
        "Pause between two looks for idle producers.",
        valid=at_least(1),
        internal=True,
    ),
    Definition(
        "transactional.id.expiration.ms",
        ConfigType.INT,
        "604800000",
        "Time after which an idle transactional id is forgotten.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.max.timeout.ms",
        ConfigType.INT,
        "900000",
        "Longest transaction timeout that a producer may ask for.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        ConfigType.INT,
        "10000",
        "Pause between two looks for transactions that took too long.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        ConfigType.INT,
        "3600000",
        "Pause between two looks for expired transactional ids.",
        valid=at_least(1),
    ),
    Definition(
        "transaction.two.phase.commit.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether producers may keep transactions open without a timeout.",
        ignored="klamm has no two-phase commit, as Kafka's clients have none yet.",
    ),
)

"""Broker settings that exist only while the broker runs, set by IncrementalAlterConfigs."""

from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.validators import at_least

QUOTA = "klamm has no quotas yet."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "leader.replication.throttled.rate",
        ConfigType.LONG,
        "9223372036854775807",
        "Bytes per second that leaders send to throttled replicas.",
        ignored=QUOTA,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "follower.replication.throttled.rate",
        ConfigType.LONG,
        "9223372036854775807",
        "Bytes per second that followers read into throttled replicas.",
        ignored=QUOTA,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        ConfigType.LONG,
        "9223372036854775807",
        "Bytes per second at which partitions move between log directories.",
        ignored=QUOTA,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
)

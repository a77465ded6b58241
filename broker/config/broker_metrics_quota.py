"""Metrics and quotas."""

from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.validators import ListOf, at_least

METRICS = "klamm loads no metrics reporters."
QUOTA = "klamm has no quotas yet."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "metrics.num.samples",
        ConfigType.INT,
        "2",
        "Samples kept to compute a metric.",
        ignored=METRICS,
        valid=at_least(1),
    ),
    Definition(
        "metrics.sample.window.ms",
        ConfigType.LONG,
        "30000",
        "Length of one sample of a metric.",
        ignored=METRICS,
        valid=at_least(1),
    ),
    Definition(
        "metric.reporters",
        ConfigType.LIST,
        "org.apache.kafka.common.metrics.JmxReporter",
        "Classes that export metrics.",
        ignored=METRICS,
        valid=ListOf(),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "metrics.recording.level",
        ConfigType.STRING,
        "INFO",
        "Level of detail of the metrics.",
        ignored=METRICS,
    ),
    Definition(
        "kafka.metrics.reporters",
        ConfigType.LIST,
        "",
        "Classes that export Kafka's older metrics.",
        ignored=METRICS,
        valid=ListOf(),
    ),
    Definition(
        "kafka.metrics.polling.interval.secs",
        ConfigType.INT,
        "10",
        "Pause between two exports of Kafka's older metrics.",
        ignored=METRICS,
        valid=at_least(1),
    ),
    Definition(
        "telemetry.max.bytes",
        ConfigType.INT,
        "1048576",
        "Largest push of client metrics.",
        ignored="klamm collects no client metrics.",
        valid=at_least(1),
    ),
    Definition(
        "quota.window.num",
        ConfigType.INT,
        "11",
        "Samples kept to measure the rate of a client.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "replication.quota.window.num",
        ConfigType.INT,
        "11",
        "Samples kept to measure the rate of replication.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "alter.log.dirs.replication.quota.window.num",
        ConfigType.INT,
        "11",
        "Samples kept to measure the rate of moves between log directories.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "controller.quota.window.num",
        ConfigType.INT,
        "11",
        "Samples kept to measure the rate of topic changes.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "quota.window.size.seconds",
        ConfigType.INT,
        "1",
        "Length of one sample of the rate of a client.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "replication.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        "Length of one sample of the rate of replication.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "alter.log.dirs.replication.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        "Length of one sample of the rate of moves between log directories.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "controller.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        "Length of one sample of the rate of topic changes.",
        ignored=QUOTA,
        valid=at_least(1),
    ),
    Definition(
        "client.quota.callback.class",
        ConfigType.CLASS,
        None,
        (
            "Class that computes quotas; only the empty value is supported, because klamm would "
            "not ask it."
        ),
        supported=("",),
    ),
)

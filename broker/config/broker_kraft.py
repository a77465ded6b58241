"""The roles of the node and its metadata log."""

from klamm.broker.config.definition import ConfigType, Definition, Difference
from klamm.broker.config.validators import ListOf, at_least

ONE = "klamm is broker and controller in one process."
METALOG = "klamm keeps the metadata log like any other log and never drops its beginning."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "process.roles",
        ConfigType.LIST,
        "broker,controller",
        "Roles of this process; klamm is always broker and controller in one.",
        valid=ListOf(("broker", "controller"), may_be_empty=False),
        supported=(
            "broker,controller",
            "controller,broker",
        ),
        difference=Difference(
            None,
            "Kafka has no default; klamm starts without a file.",
        ),
    ),
    Definition(
        "node.id",
        ConfigType.INT,
        "1",
        "Number of this node in the cluster.",
        valid=at_least(0),
        difference=Difference(
            None,
            "Kafka has no default; klamm starts without a file.",
        ),
    ),
    Definition(
        "initial.broker.registration.timeout.ms",
        ConfigType.INT,
        "60000",
        "Longest wait for the first registration with the controller.",
        ignored=ONE,
    ),
    Definition(
        "broker.heartbeat.interval.ms",
        ConfigType.INT,
        "2000",
        "Pause between two heartbeats to the controller.",
        ignored=ONE,
    ),
    Definition(
        "broker.session.timeout.ms",
        ConfigType.INT,
        "9000",
        "Time without a heartbeat after which a broker counts as dead.",
        ignored=ONE,
    ),
    Definition(
        "controller.listener.names",
        ConfigType.LIST,
        "CONTROLLER",
        "Names of the listeners of the controller; klamm does not open them.",
        valid=ListOf(may_be_empty=False),
        difference=Difference(
            None,
            "Kafka has no default; klamm starts without a file.",
        ),
    ),
    Definition(
        "sasl.mechanism.controller.protocol",
        ConfigType.STRING,
        "GSSAPI",
        "SASL mechanism towards controllers.",
        ignored=ONE,
    ),
    Definition(
        "controller.performance.sample.period.ms",
        ConfigType.LONG,
        "60000",
        "Pause between two reports of slow controller events.",
        ignored=ONE,
        valid=at_least(100),
        internal=True,
    ),
    Definition(
        "controller.performance.always.log.threshold.ms",
        ConfigType.LONG,
        "2000",
        "Duration from which a controller event is always logged.",
        ignored=ONE,
        valid=at_least(0),
        internal=True,
    ),
    Definition(
        "server.max.startup.time.ms",
        ConfigType.LONG,
        "9223372036854775807",
        "Longest time that starting may take.",
        ignored="klamm starts or fails at once.",
        valid=at_least(0),
        internal=True,
    ),
    Definition(
        "metadata.log.max.record.bytes.between.snapshots",
        ConfigType.LONG,
        "20971520",
        "Bytes of metadata records after which a snapshot is written.",
        ignored=METALOG,
        valid=at_least(1),
    ),
    Definition(
        "metadata.log.max.snapshot.interval.ms",
        ConfigType.LONG,
        "3600000",
        "Longest time between two snapshots of the metadata.",
        ignored=METALOG,
        valid=at_least(0),
    ),
    Definition(
        "metadata.log.dir",
        ConfigType.STRING,
        None,
        (
            "Directory of the metadata log; klamm keeps it in the first log directory, so that "
            "only this one or none may be named."
        ),
    ),
    Definition(
        "metadata.log.segment.bytes",
        ConfigType.INT,
        "1073741824",
        "Size at which a segment of the metadata log is closed.",
        ignored=METALOG,
        valid=at_least(8388608),
    ),
    Definition(
        "metadata.log.segment.ms",
        ConfigType.LONG,
        "604800000",
        "Age at which a segment of the metadata log is closed.",
        ignored=METALOG,
    ),
    Definition(
        "metadata.max.retention.bytes",
        ConfigType.LONG,
        "104857600",
        "Bytes of metadata log and snapshots that are kept.",
        ignored=METALOG,
    ),
    Definition(
        "metadata.max.retention.ms",
        ConfigType.LONG,
        "604800000",
        "Time for which metadata log and snapshots are kept.",
        ignored=METALOG,
    ),
    Definition(
        "metadata.max.idle.interval.ms",
        ConfigType.INT,
        "500",
        "Pause after which an idle controller writes an empty record.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "internal.metadata.log.segment.bytes",
        ConfigType.INT,
        None,
        "Segment size of the metadata log, for tests.",
        ignored=METALOG,
        internal=True,
    ),
    Definition(
        "internal.metadata.max.batch.size.in.bytes",
        ConfigType.INT,
        "8388608",
        "Largest batch of metadata records, for tests.",
        ignored=METALOG,
        internal=True,
    ),
    Definition(
        "internal.metadata.delete.delay.millis",
        ConfigType.LONG,
        "60000",
        "Pause before a deleted metadata file is removed, for tests.",
        ignored=METALOG,
        internal=True,
    ),
)

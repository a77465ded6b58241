"""klamm's own broker settings, which Apache Kafka does not have."""

from klamm.broker.config.definition import ConfigType, Definition, Update
from klamm.broker.config.validators import at_least

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "flush.before.ack",
        ConfigType.BOOLEAN,
        "true",
        (
            "Whether a write with acks=all is synced to disk before it is acknowledged; false "
            "gives Kafka's behaviour, which trusts the page cache."
        ),
        update=Update.CLUSTER_WIDE,
        klamm_own=True,
    ),
    Definition(
        "klamm.request.progress.timeout.ms",
        ConfigType.INT,
        "30000",
        "Longest time from the first byte of a request to its last; a slower one is closed.",
        valid=at_least(1),
        klamm_own=True,
    ),
    Definition(
        "klamm.response.progress.timeout.ms",
        ConfigType.INT,
        "30000",
        "Longest time in which a client takes none of the bytes of a response; then it is closed.",
        valid=at_least(1),
        klamm_own=True,
    ),
    Definition(
        "klamm.request.items.max",
        ConfigType.INT,
        "50000",
        "Most items (topics, partitions, keys, tagged fields) in one request.",
        valid=at_least(1),
        klamm_own=True,
    ),
    Definition(
        "klamm.decompressed.bytes.max",
        ConfigType.INT,
        "134217728",
        "Most bytes that one record batch may decompress to where the broker has to open it.",
        valid=at_least(1),
        klamm_own=True,
    ),
    Definition(
        "klamm.worker.threads",
        ConfigType.INT,
        "8",
        "Threads that sync files to disk, where the kernel does not do it by itself.",
        valid=at_least(1),
        klamm_own=True,
    ),
)

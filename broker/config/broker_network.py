"""Listeners, connections and the memory of requests."""

from klamm.broker.config.definition import ConfigType, Definition, Difference, Update
from klamm.broker.config.validators import ListOf, at_least

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "listeners",
        ConfigType.LIST,
        "PLAINTEXT://127.0.0.1:9092",
        (
            "Addresses to listen on, as NAME://host:port; an empty host means all interfaces, "
            "port 0 any free port."
        ),
        valid=ListOf(may_be_empty=False),
        update=Update.PER_BROKER,
        difference=Difference(
            "PLAINTEXT://:9092",
            (
                "Without authentication the broker is open to this machine only, unless it is "
                "told otherwise."
            ),
        ),
    ),
    Definition(
        "advertised.listeners",
        ConfigType.LIST,
        None,
        (
            "Addresses that clients are told to connect to, one per listener; without it those of "
            "listeners."
        ),
        valid=ListOf(may_be_empty=False),
    ),
    Definition(
        "listener.security.protocol.map",
        ConfigType.STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener name; klamm serves PLAINTEXT.",
        update=Update.PER_BROKER,
    ),
    Definition(
        "socket.send.buffer.bytes",
        ConfigType.INT,
        "204800",
        "Send buffer of a connection (SO_SNDBUF); -1 leaves it to the operating system.",
        difference=Difference(
            "102400",
            (
                "librdkafka on the same machine reads 9 to 13 % faster with twice the size; "
                "performance.md has figures."
            ),
        ),
    ),
    Definition(
        "socket.receive.buffer.bytes",
        ConfigType.INT,
        "-1",
        "Receive buffer of a connection (SO_RCVBUF); -1 leaves it to the operating system.",
        difference=Difference(
            "102400",
            "Linux tunes the buffer of each connection itself, by how fast it is read.",
        ),
    ),
    Definition(
        "socket.request.max.bytes",
        ConfigType.INT,
        "16777216",
        "Largest request, in bytes, that is read; a larger one closes the connection.",
        valid=at_least(1),
        difference=Difference(
            "104857600",
            (
                "Sixteen times the default message size is enough for any client with default "
                "settings, and a connection may make the broker reserve this much."
            ),
        ),
    ),
    Definition(
        "socket.listen.backlog.size",
        ConfigType.INT,
        "50",
        "Connections that may wait to be accepted.",
        valid=at_least(1),
    ),
    Definition(
        "max.connections.per.ip",
        ConfigType.INT,
        "10000",
        (
            "Most connections from one address; 0 allows only the addresses in "
            "max.connections.per.ip.overrides."
        ),
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        difference=Difference(
            "2147483647",
            "Every limit of klamm is finite; clients behind one address share it.",
        ),
    ),
    Definition(
        "max.connections.per.ip.overrides",
        ConfigType.STRING,
        "",
        "Own limits for chosen addresses, as host:count separated by commas.",
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "max.connections",
        ConfigType.INT,
        "10000",
        "Most connections at one time.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        difference=Difference(
            "2147483647",
            "Every limit of klamm is finite; this is more than one event loop serves well.",
        ),
    ),
    Definition(
        "max.connection.creation.rate",
        ConfigType.INT,
        "2147483647",
        "Most new connections per second.",
        ignored="klamm bounds how many connections are open, not how fast they come.",
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    Definition(
        "connections.max.idle.ms",
        ConfigType.LONG,
        "600000",
        (
            "Time without a request after which a connection is closed; a negative number never "
            "closes one."
        ),
    ),
    Definition(
        "connection.failed.authentication.delay.ms",
        ConfigType.INT,
        "100",
        "Pause before a connection with a failed authentication is closed.",
        ignored="klamm has no authentication yet.",
        valid=at_least(0),
    ),
    Definition(
        "queued.max.requests",
        ConfigType.INT,
        "500",
        "Requests that may wait before reading stops.",
        ignored="klamm bounds waiting requests by their bytes (queued.max.request.bytes).",
        valid=at_least(1),
    ),
    Definition(
        "queued.max.request.bytes",
        ConfigType.LONG,
        "268435456",
        (
            "Memory for requests that are being read or answered; reading pauses when it is used "
            "up, and -1 sets no bound."
        ),
        difference=Difference(
            "-1",
            "Every limit of klamm is finite: memory is reserved before a request is read.",
        ),
    ),
    Definition(
        "num.network.threads",
        ConfigType.INT,
        "3",
        "Threads that read from and write to connections.",
        ignored="klamm serves all connections on one event loop.",
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
)

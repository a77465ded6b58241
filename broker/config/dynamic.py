"""Which broker settings may change while the broker runs, and how far at once.

A name that no table has is taken and kept, as in Kafka, where a plug-in may read it.
"""

from collections.abc import Iterable, Mapping

from klamm.broker.config import lookup, tables
from klamm.broker.config.definition import Update
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.server_config import ServerConfig

# Keys and certificates belong to a listener: they may be set behind `listener.name.NAME.` only.
OF_ONE_LISTENER = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# Of a listener's settings, those that may be set for all brokers together.
OF_LISTENERS_OF_ALL_BROKERS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
MIB = 1024 * 1024
# Kafka doubles or halves a pool of threads at most, at one time.
THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


def applicable(texts: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """Returns what counts of the settings that are stored for a broker, or for all of them.

    Another broker may have stored what can't be set at run time here; as in Kafka, it is ignored.
    """
    return {
        name: text
        for name, text in texts.items()
        if _why_fixed(name, per_broker=per_broker) is None
    }


def check_changeable(names: Iterable[str], *, per_broker: bool) -> None:
    """Raises ConfigError where a setting may not be set at run time at all."""
    for name in names:
        problem = _why_fixed(name, per_broker=per_broker)
        if problem is not None:
            raise ConfigError(f"{shown(name)} {problem}")


def _why_fixed(name: str, *, per_broker: bool) -> str | None:
    if name in OF_ONE_LISTENER:
        return "can be changed for one listener only; set it behind listener.name.NAME."
    definition = tables.find_broker_definition(name)
    if definition is not None and definition.update is Update.READ_ONLY:
        return "can't be changed while the broker runs; set it in its file and restart it"
    if per_broker:
        return None
    of_listener = name.startswith(lookup.LISTENER_PREFIX)
    if (definition is not None and definition.update is Update.PER_BROKER) or (
        of_listener and lookup.base_name(name) not in OF_LISTENERS_OF_ALL_BROKERS
    ):
        return "belongs to one broker; set it for that one"
    return None


def check_step(before: ServerConfig, after: ServerConfig) -> None:
    """Checks a change as such: some settings may have other values only after a restart.

    Raises:
        ConfigError: The broker can't go from one to the other while it runs.
    """
    if after.listeners != before.listeners:
        raise ConfigError("listeners can't be opened or closed while the broker runs; restart it")
    if after.max_connections < 1:
        raise ConfigError("max.connections=0 would let nobody in to change it back")
    for name in THREAD_COUNTS:
        definition = tables.broker_definitions()[name]
        old, new = before.value_of(definition), after.value_of(definition)
        assert isinstance(old, int)
        assert isinstance(new, int)
        if new == old:
            continue
        if new < 1:
            # Kafka, too, refuses it here, though log.cleaner.threads may be 0 at the start.
            raise ConfigError(f"{name}={new} must be at least 1 while the broker runs")
        if not old // 2 <= new <= max(old, 1) * 2:
            raise ConfigError(f"{name}={new} is below half or above the double of {old}")
    buffer_size = after.log_cleaner_dedupe_buffer_size
    if buffer_size != before.log_cleaner_dedupe_buffer_size and buffer_size <= MIB:
        raise ConfigError(f"log.cleaner.dedupe.buffer.size={buffer_size} must be above {MIB}")
    log = after.log_defaults
    for name, local, whole in (
        ("log.local.retention.ms", log.local_retention_ms, log.retention_ms),
        ("log.local.retention.bytes", log.local_retention_bytes, log.retention_bytes),
    ):
        if whole >= 0 and local != -2 and (local == -1 or local > whole):
            raise ConfigError(f"{name}={local} is above the retention of the whole log, {whole}")

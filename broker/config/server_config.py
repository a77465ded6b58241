"""The settings of a running broker, typed, checked and frozen.

An attribute is Kafka's property name with underscores, and its default here is the one in the
tables (a test compares them), so that starting without a file needs no table at all.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from klamm.broker.config import lookup, tables
from klamm.broker.config.definition import Definition
from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.group_coordinator import GroupCoordinatorConfig
from klamm.broker.config.layers import Layers
from klamm.broker.config.listeners import Listener, client_listeners
from klamm.broker.config.log_defaults import broker_log_config
from klamm.broker.config.transaction_coordinator import TransactionCoordinatorConfig
from klamm.broker.config.validators import ConfigValue
from klamm.broker.config.values import default_value, parse_value, value_text
from klamm.log.config import LogConfig

# Of a topic, as the table of topic configs has it.
SEGMENT_BYTES_MIN = 1024 * 1024

_DEFAULT_LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9092)


@dataclass(frozen=True, eq=False, repr=False)
class ServerConfig(GroupCoordinatorConfig, TransactionCoordinatorConfig):
    """What `klamm serve` was told, in the units that the names say."""

    node_id: int = 1
    broker_rack: str | None = None

    # Clients' listeners only, and the addresses that clients are told, matched by name. The
    # broker fills in the port where it is 0, and a host name where the host is empty.
    listeners: tuple[Listener, ...] = (_DEFAULT_LISTENER,)
    advertised_listeners: tuple[Listener, ...] = (_DEFAULT_LISTENER,)
    socket_send_buffer_bytes: int = 200 * 1024
    socket_receive_buffer_bytes: int = -1
    socket_listen_backlog_size: int = 50
    socket_request_max_bytes: int = 16 * 1024 * 1024
    queued_max_request_bytes: int = 256 * 1024 * 1024
    connections_max_idle_ms: int = 600_000
    max_connections: int = 10_000
    max_connections_per_ip: int = 10_000
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    klamm_request_progress_timeout_ms: int = 30_000
    klamm_response_progress_timeout_ms: int = 30_000
    klamm_request_items_max: int = 50_000
    klamm_decompressed_bytes_max: int = 128 * 1024 * 1024
    klamm_worker_threads: int = 8

    num_partitions: int = 1
    default_replication_factor: int = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    fetch_max_bytes: int = 55 * 1024 * 1024
    max_incremental_fetch_session_cache_slots: int = 1000
    max_request_partition_size_limit: int = 2000

    log_dirs: tuple[str, ...] = ("/tmp/klamm-logs",)
    metadata_log_dir: str = "/tmp/klamm-logs"
    cordoned_log_dirs: tuple[str, ...] = ()
    log_initial_task_delay_ms: int = 30_000
    log_retention_check_interval_ms: int = 300_000
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 128 * 1024 * 1024
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max
    replica_high_watermark_checkpoint_interval_ms: int = 5000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000

    # What a topic without configs of its own follows; min.insync.replicas, message.max.bytes,
    # flush.before.ack and all of log.* are in here under their topic names.
    log_defaults: LogConfig = field(default_factory=LogConfig)

    # The texts as they were given, by layer. They may hold secrets: never log them.
    layers: Layers = field(default_factory=lambda: Layers({}))

    @cached_property
    def given(self) -> Mapping[str, str]:
        """The text that counts for every setting that is given explicitly, in any layer."""
        return self.layers.merged()

    @property
    def message_max_bytes(self) -> int:
        return self.log_defaults.max_message_bytes

    @property
    def flush_before_ack(self) -> bool:
        return self.log_defaults.flush_before_ack

    def value_of(self, definition: Definition) -> ConfigValue:
        """Returns the value of any setting, also of one that has no attribute here."""
        text = self.given.get(definition.name)
        return default_value(definition) if text is None else parse_value(definition, text)

    def with_dynamic(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> "ServerConfig":
        """Returns the configuration with what was set at run time on top.

        Args:
            cluster: What is set for all brokers.
            broker: What is set for this broker.

        Raises:
            ConfigError: A text does not parse or contradicts another setting.
        """
        return build(Layers(self.layers.static, dict(cluster), dict(broker)))

    def __repr__(self) -> str:
        # Names only: a value may be a secret, and this text may end in a log.
        return f"ServerConfig(node_id={self.node_id}, given: {', '.join(sorted(self.given))})"


_DERIVED = {"listeners", "advertised_listeners", "log_dirs", "max_connections_per_ip_overrides"}
_DERIVED |= {"log_defaults", "layers", "metadata_log_dir"}
PLAIN_ATTRIBUTES = frozenset(
    attribute.name for attribute in fields(ServerConfig) if attribute.name not in _DERIVED
)


def build(layers: Layers) -> ServerConfig:
    """Returns the typed configuration of the given texts.

    Raises:
        ConfigError: A name is unknown, a text does not parse, klamm cannot do what is asked, or
            two settings contradict each other.
    """
    values = {
        name: _checked(name, text, only_dynamic=name not in layers.static)
        for name, text in layers.merged().items()
    }
    attributes: dict[str, Any] = {}
    for name, value in values.items():
        attribute = name.replace(".", "_")
        if attribute in PLAIN_ATTRIBUTES:
            attributes[attribute] = tuple(value) if isinstance(value, list) else value
    attributes["node_id"] = _node_id(values)
    attributes["log_dirs"] = _log_dirs(values)
    attributes["metadata_log_dir"] = values.get("metadata.log.dir") or attributes["log_dirs"][0]
    attributes["max_connections_per_ip_overrides"] = _per_ip_overrides(values)
    bound, advertised = _listeners(values)
    attributes["listeners"], attributes["advertised_listeners"] = bound, advertised
    config = ServerConfig(log_defaults=broker_log_config(values), layers=layers, **attributes)
    _check_together(config, values)
    return config


def _checked(name: str, text: str, *, only_dynamic: bool) -> ConfigValue:
    if lookup.is_plugin_setting(name):
        return text
    definition = lookup.broker_definition(name)
    if definition is None and only_dynamic:
        definition = tables.dynamic_broker_definitions().get(name)
        if definition is None and tables.find_broker_definition(lookup.base_name(name)) is None:
            # As in Kafka: somebody may read it. A file, which people write by hand, is not so free.
            return text
    if definition is None:
        raise lookup.unknown_property(name)
    value = parse_value(definition, text)
    supported = definition.supported
    if supported is not None and (value_text(value) or "") not in supported:
        wanted = f"set {name}={supported[0]}" if supported[0] else f"remove {name}"
        raise ConfigError(f"{name}={shown(text)} is not supported by klamm; {wanted}")
    return value


def _listeners(
    values: Mapping[str, ConfigValue],
) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    lists = {
        name: list(texts)
        for name in ("listeners", "advertised.listeners")
        if isinstance(texts := values.get(name), list)
    }
    lists.setdefault("listeners", [str(_DEFAULT_LISTENER)])
    protocol_map = values.get("listener.security.protocol.map")
    controllers = values.get("controller.listener.names")
    bound, advertised = client_listeners(
        lists,
        protocol_map if isinstance(protocol_map, str) else None,
        controllers if isinstance(controllers, list) else ["CONTROLLER"],
    )
    between_brokers = values.get("inter.broker.listener.name")
    if isinstance(between_brokers, str) and between_brokers.upper() not in {
        listener.name for listener in bound
    }:
        raise ConfigError(
            f"inter.broker.listener.name={shown(between_brokers)} is not one of listeners; "
            f"set it to {bound[0].name} or remove it"
        )
    return bound, advertised


def _node_id(values: Mapping[str, ConfigValue]) -> ConfigValue:
    node_id = values.get("node.id", values.get("broker.id", 1))
    broker_id = values.get("broker.id", node_id)
    if node_id != broker_id:
        raise ConfigError(
            f"node.id={node_id} and broker.id={broker_id} are the same setting; remove broker.id"
        )
    return node_id


def _log_dirs(values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    directories = values.get("log.dirs", values.get("log.dir", ["/tmp/klamm-logs"]))
    assert isinstance(directories, list)
    if any("\0" in directory for directory in directories):
        raise ConfigError("log.dirs has a zero byte in it, which no directory can; remove it")
    cordoned = values.get("cordoned.log.dirs", [])
    assert isinstance(cordoned, list)
    unknown = [one for one in cordoned if one not in directories and cordoned != ["*"]]
    if unknown:
        raise ConfigError(f"cordoned.log.dirs={shown(unknown[0])} is none of log.dirs; name those")
    if len({os.path.abspath(directory) for directory in directories}) < len(directories):
        raise ConfigError("log.dirs names a directory twice; name each once")
    return tuple(directories)


def _per_ip_overrides(values: Mapping[str, ConfigValue]) -> dict[str, int]:
    text = values.get("max.connections.per.ip.overrides")
    overrides: dict[str, int] = {}
    for pair in str(text or "").split(","):
        if not pair.strip():
            continue
        host, colon, count = (part.strip() for part in pair.rpartition(":"))
        if not colon or not host or not count.isdecimal() or len(count) > 10:
            raise ConfigError(
                f"max.connections.per.ip.overrides: {shown(pair.strip())} must be host:count"
            )
        overrides[host] = int(count)
    return overrides


def _check_together(config: ServerConfig, values: Mapping[str, ConfigValue]) -> None:
    """Checks what no setting can be asked alone."""
    config.check_group_limits()
    bound = config.queued_max_request_bytes
    if 0 < bound < config.socket_request_max_bytes:
        raise ConfigError(
            f"queued.max.request.bytes={bound} leaves no room for one request of "
            f"socket.request.max.bytes={config.socket_request_max_bytes}; raise it or set -1"
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigError(
            "max.connections.per.ip=0 lets nobody in; raise it or set "
            "max.connections.per.ip.overrides"
        )
    largest = config.message_max_bytes
    if "message.max.bytes" in values and largest > config.socket_request_max_bytes:
        raise ConfigError(
            f"message.max.bytes={largest} can never arrive; raise socket.request.max.bytes above it"
        )
    for name in ("offsets.topic.segment.bytes", "transaction.state.log.segment.bytes"):
        size = values.get(name)
        if isinstance(size, int) and size < SEGMENT_BYTES_MIN:
            raise ConfigError(
                f"{name}={size} is less than any topic may have, so that this one could never be "
                f"created; set at least {SEGMENT_BYTES_MIN}"
            )
    if "security.inter.broker.protocol" in values and "inter.broker.listener.name" in values:
        raise ConfigError(
            "security.inter.broker.protocol and inter.broker.listener.name exclude each other; "
            "remove the first"
        )
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        nodes = values.get(name)
        if isinstance(nodes, list) and len(nodes) > 1:
            raise ConfigError(f"{name} names {len(nodes)} nodes; klamm is one, so name at most one")

"""Putting altered configs into force, without a restart.

Whoever can ask for a setting when it is needed does so (`broker.config`, `image.resource_configs`):
limits of connections, configs of groups, what new topics get. Here is who has to be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klamm.broker.config import ServerConfig
from klamm.broker.loading import configure_producers, log_config
from klamm.broker.metadata.image import ResourceType
from klamm.broker.steps import Stepwise

if TYPE_CHECKING:
    from klamm.broker.broker import Broker


def put_into_force(
    broker: Broker, server: ServerConfig, altered: Iterable[tuple[int, str]]
) -> Stepwise[None]:
    """Let a running broker obey what was altered.

    Args:
        server: the settings of the broker as they are now.
        altered: the resources whose configs are others now.
    """
    topics: Iterable[str]
    if server is broker.config:
        topics = [name for kind, name in altered if kind == ResourceType.TOPIC]
    else:
        broker.config = server
        broker.logs.producer_id_expiration_ms = server.producer_id_expiration_ms
        broker.log_care.reconfigure()
        broker.groups.reconfigure()
        # Whatever a topic does not set, it has from the broker.
        topics = list(broker.metadata.image.topics)
    for name in topics:
        config = log_config(broker, name)
        for state in broker.metadata.image.topics[name].partitions:
            yield None
            partition = broker.partitions.get(name, state.index)
            if partition is not None:
                configure_producers(partition.log, server)
                partition.log.update_config(config)

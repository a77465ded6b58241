"""One file per API. The table built from these files is the only source of ApiVersions.

A handler module has a docstring (key, versions, promise, deviations) and

    API_KEY = 3
    VERSIONS = (0, 13)
    def handle(request, context) -> response | Pending | awaitable | Steps
    def error_response(request, code) -> response

`handle` answers at once, or returns a `Pending` that is completed later, or is `async` and runs in
a task of its own; then the connection handles no further request until it has ended. A handler
whose requests may name thousands of partitions, or whose response may be long, is a generator
(`Steps`, see replies.py): its response is encoded in steps, too. None means that the client expects
no reply. `error_response` is the same refusal for everything in the request: it is used when a
handler fails, and by the hooks that tests set.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from klamm.wire.errors import ErrorCode
from klamm.wire.registry import api
from klamm.wire.schema import Message

SERVED = (
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "alter_configs",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "api_versions",
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "create_partitions",
    "create_topics",
    "delete_groups",
    "delete_records",
    "delete_topics",
    "describe_cluster",
    "describe_configs",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_quorum",
    "describe_topic_partitions",
    "describe_transactions",
    "elect_leaders",
    "end_txn",
    "fetch",
    "find_coordinator",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "join_group",
    "leave_group",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_partition_reassignments",
    "list_transactions",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "sync_group",
    "txn_offset_commit",
    "update_features",
    "write_txn_markers",
)


@dataclass(frozen=True, slots=True)
class Route:
    """What serves one API key."""

    api_key: int
    name: str
    min_version: int
    max_version: int
    advertised_min_version: int
    request: type[Message]
    handle: Callable[[Any, Any], Any]
    error_response: Callable[[Any, ErrorCode], Any]


def load_routes() -> dict[int, Route]:
    """Import every handler and check what it says it serves against the protocol."""
    routes = {}
    for name in SERVED:
        route = _route(importlib.import_module(f"klamm.broker.handlers.{name}"))
        routes[route.api_key] = route
    return dict(sorted(routes.items()))


def _route(module: ModuleType) -> Route:
    declared = api(module.API_KEY)
    min_version, max_version = module.VERSIONS
    assert declared.min_version <= min_version <= max_version <= declared.max_version, module
    return Route(
        module.API_KEY,
        declared.name,
        min_version,
        max_version,
        getattr(module, "ADVERTISED_MIN_VERSION", min_version),
        declared.request,
        module.handle,
        module.error_response,
    )

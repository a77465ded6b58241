"""The state of a broker as its clients are told it: what a restart has to bring back.

Topics and their settings, the ends of each partition, producers, groups and their offsets, and
transactions. Left out is what a restart may change: epochs of leaders, and the logs of the
coordinators themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from compat_tests.history.events import Event
from compat_tests.history.recorder import History
from compat_tests.process.asking import Asker
from compat_tests.process.watched import until
from compat_tests.twin.codec import Plain

EARLIEST, LATEST, OF_LARGEST_TIMESTAMP = -2, -1, -3
ALL, COMMITTED = 0, 1
# What ListOffsets is asked: the timestamp, and who asks.
ENDS = {
    "log start": (EARLIEST, ALL),
    "last stable": (LATEST, COMMITTED),
    "high watermark": (LATEST, ALL),
    "largest timestamp": (OF_LARGEST_TIMESTAMP, ALL),
}
OF_TOPICS = 2
DEFAULT = 5


def add_state(history: History, bootstrap: str, phase: str) -> dict[str, str]:
    """Add what the broker says of itself, `live` or `replayed`, and return it by name."""
    until(lambda: are_loaded(bootstrap), "all coordinators have loaded")
    with Asker(bootstrap) as asker:
        told = {name: json.dumps(value, default=str) for name, value in _everything(asker)}
    for name, value in told.items():
        history.record(Event("ok", "state", name=name, value=value, phase=phase))
    return told


def are_loaded(bootstrap: str) -> bool:
    """Whether groups and transactions can be asked for."""
    with Asker(bootstrap) as asker:
        groups = asker.ask("list_groups", 5, {"states_filter": [], "types_filter": []})
        return {groups["error_code"], _transactions(asker)["error_code"]} == {"none"}


def _everything(asker: Asker) -> Iterator[tuple[str, object]]:
    topics = asker.ask("metadata", 12, {"topics": None, "allow_auto_topic_creation": False})
    for topic in topics["topics"]:
        name, partitions = topic["name"], range(len(topic["partitions"]))
        yield f"topic {name}", (topic["topic_id"], len(partitions), _settings(asker, name))
        if not topic["is_internal"]:
            for index in partitions:
                yield f"log {name}-{index}", _ends(asker, name, index)
                yield f"producers of {name}-{index}", _producers(asker, name, index)
    yield from _groups(asker)
    for one in _transactions(asker)["transaction_states"]:
        name = one["transactional_id"]
        yield f"transaction {name}", one
        # The codec has no words for one that has not begun.
        if one["transaction_state"] == "Ongoing":
            body = {"transactional_ids": [name]}
            yield f"partitions of {name}", asker.ask("describe_transactions", 0, body)


def _settings(asker: Asker, topic: str) -> list[tuple[str, str]]:
    resource = {"resource_type": OF_TOPICS, "resource_name": topic, "configuration_keys": None}
    (answer,) = asker.ask("describe_configs", 4, {"resources": [resource]})["results"]
    return sorted(
        (one["name"], one["value"]) for one in answer["configs"] if one["config_source"] != DEFAULT
    )


def _ends(asker: Asker, topic: str, index: int) -> dict[str, tuple[str, int]]:
    found = {}
    for name, (timestamp, isolation) in ENDS.items():
        partition = {"partition_index": index, "current_leader_epoch": -1, "timestamp": timestamp}
        body = {
            "replica_id": -1,
            "isolation_level": isolation,
            "topics": [{"name": topic, "partitions": [partition]}],
        }
        (answer,) = asker.ask("list_offsets", 7, body)["topics"]
        (held,) = answer["partitions"]
        found[name] = (held["error_code"], held["offset"])
    return found


def _producers(asker: Asker, topic: str, index: int) -> list[Plain]:
    body = {"topics": [{"name": topic, "partition_indexes": [index]}]}
    (answer,) = asker.ask("describe_producers", 0, body)["topics"]
    (held,) = answer["partitions"]
    return _sorted(held["active_producers"], "producer_id")


def _groups(asker: Asker) -> Iterator[tuple[str, object]]:
    listed = asker.ask("list_groups", 5, {"states_filter": [], "types_filter": []})["groups"]
    yield "groups", _sorted(listed, "group_id")
    for group in listed:
        name = group["group_id"]
        if group["group_type"] == "consumer":
            body = {"group_ids": [name], "include_authorized_operations": False}
            (told,) = asker.ask("consumer_group_describe", 1, body)["groups"]
        else:
            body = {"groups": [name], "include_authorized_operations": False}
            (told,) = asker.ask("describe_groups", 5, body)["groups"]
        told["members"] = _sorted(told["members"], "member_id")
        yield f"group {name}", told
        body = {"groups": [{"group_id": name, "topics": None}], "require_stable": False}
        (offsets,) = asker.ask("offset_fetch", 8, body)["groups"]
        yield f"offsets of {name}", _sorted(offsets["topics"], "name")


def _transactions(asker: Asker) -> Plain:
    return asker.ask(
        "list_transactions",
        1,
        {"state_filters": [], "producer_id_filters": [], "duration_filter": -1},
    )


def _sorted(found: Iterable[Plain], name: str) -> list[Plain]:
    return sorted(found, key=lambda one: str(one[name]))

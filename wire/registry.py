"""Which APIs exist: key, name, versions, listeners, and the classes, imported when asked for.

The keys in API_KEYS are all that Kafka 4.3 knows; those in BROKER_API_KEYS are the ones it serves
on broker listeners. What this broker serves is decided by its handlers, not here.
"""

from dataclasses import dataclass
from importlib import import_module

from klamm.wire.api_table import API_TABLE
from klamm.wire.schema import Message


@dataclass(frozen=True, slots=True)
class Api:
    """One API, with the stable versions that Kafka has of it."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_from: int | None
    listeners: tuple[str, ...]


_ROWS = {row[0]: row for row in API_TABLE}
API_KEYS = tuple(_ROWS)
BROKER_API_KEYS = tuple(key for key in API_KEYS if "broker" in _ROWS[key][6])
API_NAMES = {key: row[2] for key, row in _ROWS.items()}

# (first version, last version, first flexible version), for the header of every request.
_NEVER = 1 << 15
VERSION_BOUNDS = {
    key: (row[3], row[4], _NEVER if row[5] is None else row[5]) for key, row in _ROWS.items()
}

_apis: dict[int, Api] = {}


def api(key: int) -> Api:
    """Give an API by its key, importing its one module the first time.

    Raises:
        KeyError: there is no such API.
    """
    known = _apis.get(key)
    if known is None:
        _, module_name, name, first, last, flexible_from, listeners = _ROWS[key]
        module = import_module(f"klamm.wire.messages.{module_name}")
        request, response = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
        known = Api(key, name, request, response, first, last, flexible_from, listeners)
        _apis[key] = known
    return known


def is_flexible(key: int, version: int) -> bool:
    """Tell whether this version has compact lengths and tagged fields, and so header v2."""
    return version >= VERSION_BOUNDS[key][2]

"""`python -m klamm.broker.handlers.page > docs/apis.md`: the page of APIs, from the handlers.

What each API does is the first sentence of its handler's docstring. A test compares the page with
what this prints.
"""

from __future__ import annotations

import sys
import textwrap

from klamm.broker.handlers import Route, load_routes
from klamm.wire.registry import API_NAMES, BROKER_API_KEYS, api

HEAD = """\
# The APIs that klamm serves

Generated from `broker/handlers/` by `python -m klamm.broker.handlers.page > docs/apis.md`; a test
fails when this page is not up to date. A handler's file says more: its promise, and what each
version added.

| Key | API | Versions | Apache Kafka 4.3 | What it does |
|---|---|---|---|---|
"""


def page() -> str:
    """Returns the whole page."""
    routes = load_routes()
    rows = "".join(_row(route) for route in routes.values())
    others = [API_NAMES[key] for key in sorted(BROKER_API_KEYS) if key not in routes]
    rest = (
        f"Served: {len(routes)} of the {len(BROKER_API_KEYS)} APIs that Apache Kafka has on its "
        "broker listeners. The others are not advertised, and a request for one closes the "
        f"connection: {', '.join(others)}."
    )
    return f"{HEAD}{rows}\n{textwrap.fill(rest, 100)}\n"


def _row(route: Route) -> str:
    kafka = api(route.api_key)
    cells = (
        str(route.api_key),
        f"[{route.name}](../broker/handlers/{_module(route).rpartition('.')[2]}.py)",
        _versions(route.min_version, route.max_version),
        _versions(kafka.min_version, kafka.max_version),
        _summary(route),
    )
    return f"| {' | '.join(cells)} |\n"


def _versions(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def _summary(route: Route) -> str:
    """What stands behind the key in `Name (key N): what it does.`, the docstring's first line."""
    first = (sys.modules[_module(route)].__doc__ or "").partition("\n")[0]
    start = f"{route.name} (key {route.api_key}): "
    assert first.startswith(start), f"{_module(route)}: the docstring begins with {first!r}"
    return first.removeprefix(start).removesuffix(".")


def _module(route: Route) -> str:
    return route.handle.__module__


if __name__ == "__main__":
    sys.stdout.write(page())

"""kafka-transactions, run in the Java process that all tests share."""

from __future__ import annotations

import re

from compat_tests.apache_kafka import TOOLS
from compat_tests.clients.java_client import JavaProcess


def kafka_transactions(
    process: JavaProcess, bootstrap: str, *arguments: str
) -> list[dict[str, str]]:
    """The rows of the table that it prints, by the names of the columns."""
    reply = process.call(
        "tool",
        main=TOOLS["kafka-transactions"],
        arguments=["--bootstrap-server", bootstrap, *arguments],
    )
    assert reply["code"] == 0, reply["printed"]
    lines = [re.split(r"\s*\t\s*", line.strip()) for line in reply["printed"].splitlines()]
    if not lines:
        return []
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]

"""confluent-kafka as the client that works while something happens to the process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from compat_tests.clients import streaming
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import ProducerMode
from compat_tests.history.recorder import History

CLIENT = "confluent-kafka"

IDEMPOTENT = ProducerMode(acks="all", idempotence=True)
ACKS_1 = ProducerMode(acks="1", idempotence=False)


# Of clients whose broker is back in a moment, again and again.
IMPATIENT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50, "log_level": 0}


def producing(
    bootstrap: str,
    topic: str,
    history: History,
    mode: ProducerMode,
    prefix: str = "",
    settings: dict[str, Any] | None = None,
    pause_s: float = streaming.PAUSE_S,
) -> AbstractContextManager[None]:
    """Send to partition 0 until the block ends."""
    return streaming.producing(
        *(CLIENT, bootstrap, topic, history),
        mode=mode,
        java=_no_java,
        prefix=prefix,
        settings=settings,
        pause_s=pause_s,
    )


def following(
    bootstrap: str, topic: str, history: History, settings: dict[str, Any] | None = None
) -> AbstractContextManager[None]:
    """Read partition 0 from its beginning until the block ends."""
    return streaming.following(CLIENT, bootstrap, topic, history, java=_no_java, settings=settings)


def read_all(bootstrap: str, topic: str) -> list[tuple[int, str]]:
    """Offset and value of every record in partition 0, from the start of its log on."""
    client = ConfluentKafka()
    ends = client.positions(bootstrap, topic)
    records = client.consume(bootstrap, topic, ends.latest - ends.earliest, start=ends.earliest)
    return [(one.offset, (one.value or b"").decode()) for one in records]


def _no_java() -> JavaProcess:
    raise AssertionError("confluent-kafka needs no Java")

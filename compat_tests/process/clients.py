"""confluent-kafka as the client that works while something happens to the process."""

from __future__ import annotations

from contextlib import AbstractContextManager

from compat_tests.clients import streaming
from compat_tests.clients.history import History
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import ProducerMode

CLIENT = "confluent-kafka"

IDEMPOTENT = ProducerMode(acks="all", idempotence=True)
ACKS_1 = ProducerMode(acks="1", idempotence=False)


def producing(
    bootstrap: str, topic: str, history: History, mode: ProducerMode, prefix: str = ""
) -> AbstractContextManager[None]:
    """Send to partition 0 until the block ends."""
    return streaming.producing(
        *(CLIENT, bootstrap, topic, history), mode=mode, java=_no_java, prefix=prefix
    )


def following(bootstrap: str, topic: str, history: History) -> AbstractContextManager[None]:
    """Read partition 0 from its beginning until the block ends."""
    return streaming.following(CLIENT, bootstrap, topic, history, java=_no_java)


def read_all(bootstrap: str, topic: str) -> list[tuple[int, str]]:
    """Offset and value of every record in partition 0."""
    client = ConfluentKafka()
    count = client.positions(bootstrap, topic).latest
    records = client.consume(bootstrap, topic, count)
    return [(one.offset, (one.value or b"").decode()) for one in records]


def _no_java() -> JavaProcess:
    raise AssertionError("confluent-kafka needs no Java")

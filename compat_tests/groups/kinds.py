"""The kinds of members: a library and a protocol, and their settings by the library's own names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SESSION_MS = 3_000
HEARTBEAT_MS = 300

JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@dataclass(frozen=True)
class Kind:
    """Who the member is; `assignor` is the client's in the classic protocol, else the broker's."""

    library: str
    protocol: str = "classic"
    assignor: str = "range"

    def __str__(self) -> str:
        shown = self.protocol if self.assignor == "range" else f"{self.protocol}-{self.assignor}"
        return f"{self.library}-{shown}"

    def settings(
        self,
        bootstrap: str,
        group: str,
        *,
        reset: str = "earliest",
        instance: str | None = None,
        auto_commit_ms: int | None = None,
        session_ms: int = SESSION_MS,
    ) -> dict[str, Any]:
        """A consumer that retries quickly, so that tests do not wait for its pauses."""
        make = {"kafka-python": self._kafka_python, "java": self._java, "console": self._java}
        common = make.get(self.library, self._librdkafka)(session_ms)
        names = _Names(common.pop("_separator", "."))
        shared = {
            names("bootstrap.servers"): bootstrap,
            names("group.id"): group,
            names("auto.offset.reset"): reset,
            names("enable.auto.commit"): auto_commit_ms is not None,
            names("reconnect.backoff.max.ms"): 500,
            # A leader that was told of no partitions, because the topic is new, asks again.
            names(self._metadata_age): 1_000,
        }
        if auto_commit_ms is not None:
            shared[names("auto.commit.interval.ms")] = auto_commit_ms
        if instance is not None:
            shared[names("group.instance.id")] = instance
        if self.library in ("java", "console"):
            return {key: _java_text(value) for key, value in {**common, **shared}.items()}
        return {**common, **shared}

    @property
    def _metadata_age(self) -> str:
        librdkafka = self.library in ("confluent-kafka", "kcat")
        return "topic.metadata.refresh.interval.ms" if librdkafka else "metadata.max.age.ms"

    def _librdkafka(self, session_ms: int) -> dict[str, Any]:
        base: dict[str, Any] = {
            "fetch.wait.max.ms": 100,
            "retry.backoff.ms": 50,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "coordinator.query.interval.ms": 1_000,
        }
        if self.protocol == "consumer":
            return {**base, "group.protocol": "consumer", "group.remote.assignor": self.assignor}
        return {
            **base,
            "partition.assignment.strategy": self.assignor,
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }

    def _java(self, session_ms: int) -> dict[str, Any]:
        base: dict[str, Any] = {"fetch.max.wait.ms": 100, "retry.backoff.ms": 50}
        if self.protocol == "consumer":
            return {**base, "group.protocol": "consumer", "group.remote.assignor": self.assignor}
        return {
            **base,
            "group.protocol": "classic",
            "partition.assignment.strategy": JAVA_ASSIGNORS[self.assignor],
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }

    def _kafka_python(self, session_ms: int) -> dict[str, Any]:
        return {
            "_separator": "_",
            "assignors": [self.assignor],
            "fetch_max_wait_ms": 100,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "retry_backoff_ms": 50,
            "session_timeout_ms": session_ms,
        }


class _Names:
    """Kafka's name of a setting as a library writes it."""

    def __init__(self, separator: str) -> None:
        self._separator = separator

    def __call__(self, name: str) -> str:
        return name.replace(".", self._separator)


def _java_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


CONFLUENT = Kind("confluent-kafka")
CONFLUENT_NEW = Kind("confluent-kafka", "consumer")
KAFKA_PYTHON = Kind("kafka-python")
JAVA = Kind("java")
JAVA_NEW = Kind("java", "consumer")
KCAT = Kind("kcat")
CONSOLE = Kind("console")
CONSOLE_NEW = Kind("console", "consumer")

# Console consumers do not say what they are assigned, and cost a Java process each.
KINDS: Sequence[Kind] = (CONFLUENT, CONFLUENT_NEW, KAFKA_PYTHON, JAVA, JAVA_NEW, KCAT)

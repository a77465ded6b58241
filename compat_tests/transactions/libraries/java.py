"""Apache Kafka's own client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_tests.clients.java_client import JavaError, JavaProcess
from compat_tests.transactions.libraries.model import (
    TIMEOUT_MS,
    FencedError,
    TransactionError,
    Transform,
)

FENCED = ("ProducerFencedException", "InvalidProducerEpochException")


class JavaProducer:
    def __init__(self, process: JavaProcess, config: Mapping[str, str]) -> None:
        self._process = process
        self._target = 0
        self._target = self._call("open", config=dict(config))["producer"]

    def _call(self, op: str, **arguments: Any) -> dict[str, Any]:
        try:
            return self._process.call(op, **arguments)
        except JavaError as error:
            if error.name in FENCED:
                raise FencedError(str(error)) from error
            raise TransactionError(str(error)) from error

    def _ask(self, what: str, **arguments: Any) -> None:
        self._call("transaction", target=self._target, what=what, **arguments)

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        self._ask("send", topic=topic, partition=partition, value=value)

    def flush(self) -> None:
        self._ask("flush")

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        self._ask("close")


class Java:
    name = "java"

    def __init__(self, process: JavaProcess) -> None:
        self._process = process

    def open(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS
    ) -> JavaProducer:
        return JavaProducer(self._process, _java_producer(bootstrap, transactional_id, timeout_ms))

    def transform(self, bootstrap: str, job: Transform) -> None:
        self._process.call(
            "transform",
            config={
                "bootstrap.servers": bootstrap,
                "group.id": job.group_id,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            },
            producer=_java_producer(bootstrap, job.transactional_id, TIMEOUT_MS),
            source=job.source,
            target=job.target,
            count=job.count,
            commits=job.commits,
        )


def _java_producer(bootstrap: str, transactional_id: str, timeout_ms: int) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": str(timeout_ms),
        "reconnect.backoff.max.ms": "500",
    }

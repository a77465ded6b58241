"""Apache Kafka's own Java client, in one Java process that lives as long as the test run."""

from __future__ import annotations

import base64
import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from compat_tests.apache_kafka.programs import program_command
from compat_tests.clients.model import (
    DEFAULT_MODE,
    DELIVERY_TIMEOUT_S,
    READ_UNCOMMITTED,
    Delivery,
    Positions,
    ProduceError,
    ProducerMode,
    Received,
    Record,
    TimestampType,
)

DRIVER = Path(__file__).resolve().parent / "java" / "ClientDriver.java"
REPLY_TIMEOUT_S = DELIVERY_TIMEOUT_S * 2


class JavaError(Exception):
    """A command of the driver failed; ``name`` is the simple name of the Java exception."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


class JavaProcess:
    """The driver process."""

    def __init__(self) -> None:
        options = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        self._process = subprocess.Popen(
            program_command(DRIVER, options=options, log_level="ERROR"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._replies: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._reader = threading.Thread(target=self._read, name="java driver", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reply = json.loads(line)
            self._replies[reply["id"]].put(reply)
        ended = {"error": "Ended", "detail": "the Java process ended", "done": True}
        for replies in self._replies.values():
            replies.put(ended)

    def send(self, op: str, **arguments: Any) -> int:
        """Send one command; its replies are read with `next_reply`."""
        assert self._process.stdin is not None
        with self._lock:
            command_id = next(self._ids)
            self._replies[command_id] = queue.SimpleQueue()
            line = json.dumps({"id": command_id, "op": op, **arguments})
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return command_id

    def next_reply(
        self, command_id: int, timeout_s: float | None = REPLY_TIMEOUT_S
    ) -> dict[str, Any]:
        """The next reply or event of a command."""
        return self._replies[command_id].get(timeout=timeout_s)

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Send one command and wait for its only reply."""
        reply = self.next_reply(self.send(op, **arguments))
        if "error" in reply:
            raise JavaError(reply["error"], reply["detail"])
        return reply

    def close(self) -> None:
        """End of input ends the driver."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(30)
        self._process.stdout.close()

    def kill(self) -> None:
        """End the process like a crash would: SIGKILL. It is still to be closed."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> JavaProcess:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def producer_settings(bootstrap: str, mode: ProducerMode) -> dict[str, str]:
    """A producer that gathers what it is given into few batches, until it is flushed."""
    return {
        "bootstrap.servers": bootstrap,
        "compression.type": mode.codec,
        "acks": mode.acks,
        "enable.idempotence": str(mode.idempotence).lower(),
        "linger.ms": "1000",
        "max.request.size": str(mode.request_bytes_max),
        "reconnect.backoff.max.ms": "500",
    }


def consumer_settings(bootstrap: str) -> dict[str, str]:
    """A consumer without a group."""
    return {
        "bootstrap.servers": bootstrap,
        "enable.auto.commit": "false",
        "auto.offset.reset": "none",
        "reconnect.backoff.max.ms": "500",
    }


class JavaClient:
    """Drives the Java client."""

    name = "java"

    def __init__(self, process: JavaProcess) -> None:
        self.process = process

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = 0,
        mode: ProducerMode = DEFAULT_MODE,
    ) -> list[Delivery]:
        """Send all records and wait for all of them."""
        try:
            reply = self.process.call(
                "produce",
                config=producer_settings(bootstrap, mode),
                topic=topic,
                partition=partition,
                records=[_described(record) for record in records],
            )
        except JavaError as error:
            raise ProduceError(error.name, str(error)) from error
        return [Delivery(one["partition"], one["offset"]) for one in reply["deliveries"]]

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int = 0,
        fetch_wait_ms: int = 50,
        fetch_bytes_min: int = 1,
        isolation: str = READ_UNCOMMITTED,
    ) -> list[Received]:
        """Read ``count`` messages from offset ``start`` on."""
        reply = self.process.call(
            "consume",
            config=consumer_settings(bootstrap)
            | {
                "fetch.max.wait.ms": str(fetch_wait_ms),
                "fetch.min.bytes": str(fetch_bytes_min),
                "isolation.level": isolation,
                "request.timeout.ms": str(2 * fetch_wait_ms + 30_000),
            },
            topic=topic,
            partitions=list(partitions),
            start=start,
            count=count,
        )
        return [_received(one) for one in reply["records"]]

    def positions(self, bootstrap: str, topic: str, timestamps: Sequence[int] = ()) -> Positions:
        """Beginning and end, and offsets by timestamp."""
        reply = self.process.call(
            "positions",
            config=consumer_settings(bootstrap),
            topic=topic,
            partition=0,
            timestamps=list(timestamps),
        )
        return Positions(reply["earliest"], reply["latest"], reply["for_times"])


def _described(record: Record) -> dict[str, Any]:
    return {
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
    }


def _received(one: dict[str, Any]) -> Received:
    return Received(
        partition=one["partition"],
        offset=one["offset"],
        key=_bytes(one["key"]),
        value=_bytes(one["value"]),
        headers=tuple((name, _bytes(value)) for name, value in one["headers"]),
        timestamp_ms=one["timestamp_ms"],
        timestamp_type=(
            TimestampType.LOG_APPEND if one["log_append_time"] else TimestampType.CREATE
        ),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)

"""kcat: the command line client over a librdkafka of its own, usually an older one."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.apache_kafka import MissingRequirementError
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

RECORD_END = "\x1e"
KEY_END = "\x1f"
TIMESTAMP_TYPES = {"create": TimestampType.CREATE, "logappend": TimestampType.LOG_APPEND}


def kcat_program() -> str:
    """Where kcat is."""
    program = shutil.which("kcat")
    if program is None:
        raise MissingRequirementError(
            "kcat is needed, and there is no `kcat` on the PATH. On Debian: apt-get install kcat"
        )
    return program


def kcat(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run kcat to its end; the caller judges its exit code."""
    return subprocess.run(
        [kcat_program(), *arguments],
        input=stdin,
        capture_output=True,
        timeout=DELIVERY_TIMEOUT_S * 2,
        check=False,
    )


class Kcat:
    """Drives kcat. It can not set timestamps, and is silent about offsets of what it sent."""

    name = "kcat"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = 0,
        mode: ProducerMode = DEFAULT_MODE,
    ) -> list[Delivery]:
        """Send the records, one kcat run for each stretch of records with equal headers."""
        options = ["-P", "-b", bootstrap, "-t", topic, "-z", mode.codec]
        options += ["-p", str(-1 if partition is None else partition)]
        options += ["-X", f"acks={mode.acks}"]
        options += ["-X", f"enable.idempotence={str(mode.idempotence).lower()}"]
        options += ["-X", f"message.max.bytes={mode.request_bytes_max}"]
        for (headers, nulls), stretch in itertools.groupby(
            records, lambda record: (record.headers, _has_nulls(record))
        ):
            shape = ["-Z"] if nulls else []
            for name, header in headers:
                shape += ["-H", name if header is None else f"{name}={header.decode()}"]
            self._send(options + shape, list(stretch))
        return [Delivery(partition or 0, None)] * len(records)

    def _send(self, options: list[str], records: list[Record]) -> None:
        """Text goes through standard input, where kcat splits it; one big value is a file."""
        if len(records) == 1 and records[0].key is None and records[0].value is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "value")
                path.write_bytes(records[0].value)
                done = kcat(*options, str(path))
        else:
            lines = RECORD_END.join(_line(record) for record in records)
            done = kcat(*options, "-D", RECORD_END, "-K", KEY_END, stdin=lines.encode())
        if done.returncode != 0 or b"Delivery failed" in done.stderr:
            raise ProduceError("kcat", done.stderr.decode(errors="replace").strip())

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
        """Read ``count`` messages of text from offset ``start`` on, of one or all partitions."""
        where = ["-t", topic, "-o", str(start), "-c", str(count)]
        if len(partitions) == 1:
            where += ["-p", str(partitions[0])]
        waiting = ["-X", f"fetch.wait.max.ms={fetch_wait_ms}"]
        waiting += ["-X", f"fetch.min.bytes={fetch_bytes_min}"]
        waiting += ["-X", f"isolation.level={isolation}"]
        done = kcat("-C", "-b", bootstrap, *where, *waiting, "-J", "-q", "-u")
        if done.returncode != 0:
            raise RuntimeError(f"kcat: {done.stderr.decode(errors='replace').strip()}")
        return [_received(line) for line in done.stdout.decode().splitlines() if line]

    def positions(self, bootstrap: str, topic: str, timestamps: Sequence[int] = ()) -> Positions:
        """What the query mode prints: the earliest is -2, the latest -1."""
        found = [self._query(bootstrap, topic, timestamp_ms) for timestamp_ms in timestamps]
        return Positions(
            earliest=self._query(bootstrap, topic, -2),
            latest=self._query(bootstrap, topic, -1),
            for_times=[None if offset == -1 else offset for offset in found],
        )

    def _query(self, bootstrap: str, topic: str, timestamp_ms: int) -> int:
        done = kcat("-Q", "-b", bootstrap, "-t", f"{topic}:0:{timestamp_ms}")
        found = re.fullmatch(rb"\S+ \[0\] offset (-?\d+)\n", done.stdout)
        if found is None:
            raise RuntimeError(f"kcat: {(done.stdout + done.stderr).decode(errors='replace')}")
        return int(found[1])


def _has_nulls(record: Record) -> bool:
    """Whether kcat must take "empty" for null; it can not send both in one record.

    A null key needs no option: it is a line without a key delimiter.
    """
    if record.value is None:
        if record.key == b"":
            raise ValueError("kcat can not send an empty key with a null value")
        return True
    if record.value == b"" and record.key is None:
        raise ValueError("kcat can not send an empty value without a key")
    return False


def _line(record: Record) -> str:
    key = None if record.key is None else record.key.decode()
    value = "" if record.value is None else record.value.decode()
    if key is None and record.value is not None:
        return value
    return f"{key or ''}{KEY_END}{value}"


def _received(line: str) -> Received:
    """One line of kcat's JSON envelope, in which keys and values are text."""
    message = json.loads(line)
    flat = [_bytes(text) for text in message.get("headers", [])]
    names, values = flat[0::2], flat[1::2]
    return Received(
        partition=message["partition"],
        offset=message["offset"],
        key=_bytes(message["key"]),
        value=_bytes(message["payload"]),
        headers=tuple(
            ((name or b"").decode(), value) for name, value in zip(names, values, strict=True)
        ),
        timestamp_ms=message["ts"],
        timestamp_type=TIMESTAMP_TYPES[message["tstype"]],
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()

"""From the launch of a process to its first answers, and the memory it needs doing nothing."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks import frames
from benchmarks.brokers import process_for
from benchmarks.loads import LoadError
from benchmarks.machine import allow_many_files, resident_bytes
from benchmarks.sockets import ERROR_CODE, ask, check, connect
from compat_tests.apache_kafka import ApacheKafka
from compat_tests.klamm_process import KlammProcess
from compat_tests.ports import free_ports

READY_TIMEOUT_S = 90
IDLE_S = 2.0
IDLE_CONNECTIONS = 1_000
_PAUSE_S = 0.002
_TOPIC = "first"


class _Launch:
    """A start in a thread of its own, because the broker is probed while it starts."""

    def __init__(self, process: ApacheKafka | KlammProcess) -> None:
        self.launched_at_s = 0.0
        self._process = process
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._process.start()
            # Kafka formats its storage before the launch, and that is not start-up time.
            self.launched_at_s = time.monotonic() - self._process.ready_s
        except BaseException as problem:
            self._problem = problem

    def failed(self) -> bool:
        return self._problem is not None

    def join(self) -> None:
        self._thread.join()
        if self._problem is not None:
            raise LoadError(f"did not start: {self._problem}") from self._problem


def measure_startup(broker: str, folder: Path) -> dict[str, float]:
    """Start a broker on a fresh directory: seconds to its first replies, and its idle memory."""
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    process = process_for(broker, folder, port=port)
    launch = _Launch(process)
    try:
        first_reply_at_s = _first_success(
            launch, port, frames.api_versions(), frames.API_VERSIONS_ERROR_AT
        )
        create = frames.create_topics(_TOPIC, 1)
        _first_success(launch, port, create, frames.create_topics_error_at(_TOPIC))
        batch = frames.record_batch(records=1, value_bytes=100)
        produce = frames.produce(_TOPIC, 0, batch, acks=-1)
        produced_at_s = _first_success(launch, port, produce, frames.produce_error_at(_TOPIC))
        launch.join()
        time.sleep(IDLE_S)
        idle_bytes = resident_bytes(process.pid)
        growth_bytes = _bytes_with_idle_connections(process.pid, port) - idle_bytes
    finally:
        launch.join()
        process.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "first reply s": first_reply_at_s - launch.launched_at_s,
        "first produce s": produced_at_s - launch.launched_at_s,
        "idle MB": idle_bytes / 1e6,
        "growth MB": max(0.0, growth_bytes / 1e6),
    }


def _bytes_with_idle_connections(pid: int, port: int) -> int:
    """Resident memory with many connections that have said hello and then say nothing.

    It is taken from a fresh process, because a JVM that has been under load has touched its whole
    heap already and grows no more.
    """
    allow_many_files()
    with ExitStack() as stack:
        for _ in range(IDLE_CONNECTIONS):
            connection = stack.enter_context(connect(port))
            check(ask(connection, frames.api_versions()), frames.API_VERSIONS_ERROR_AT)
        time.sleep(0.5)
        return resident_bytes(pid)


def _first_success(launch: _Launch, port: int, request: bytes, error_at: int) -> float:
    """Ask again and again until the reply is without error; when that was."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and not launch.failed():
        try:
            with connect(port, 5) as connection:
                while time.monotonic() < deadline:
                    reply = ask(connection, request)
                    if ERROR_CODE.unpack_from(reply, error_at)[0] in (0, _TOPIC_ALREADY_EXISTS):
                        return time.monotonic()
                    time.sleep(_PAUSE_S)
        except (OSError, LoadError):
            time.sleep(_PAUSE_S)
    raise LoadError("no reply without error")


_TOPIC_ALREADY_EXISTS = 36

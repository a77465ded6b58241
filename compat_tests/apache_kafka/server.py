"""One Apache Kafka node (KRaft, broker and controller in one process) on the loopback interface."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from compat_tests.apache_kafka.tools import java_command
from compat_tests.ports import free_ports

CLUSTER_ID = "a2xhbW0tdHdpbi1rYWZrYQ"
NODE_ID = 1
READY_TIMEOUT_S = 180
STOP_TIMEOUT_S = 180

# The lines of the config/server.properties that Kafka 4 ships, with the listeners on 127.0.0.1.
STOCK_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
}


class ApacheKafkaError(RuntimeError):
    """Apache Kafka did not start or did not stop as it should."""


class ApacheKafka:
    """A node that can be started, stopped, killed and started again on the same directory.

    Args:
        data_dir: Kafka's log directory. Its properties file and output lie beside it.
        port: of the client listener; 0 picks a free one, which restarts keep.
        properties: further lines of server.properties; they win over the stock ones.
        heap: of the Java process, as in -Xmx.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        heap: str = "1G",
        java_options: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir
        self.port = port
        self.controller_port = 0
        self.properties = dict(properties or {})
        self.heap = heap
        self.java_options = tuple(java_options)
        self.ready_s = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def output_path(self) -> Path:
        """What the server printed, of all its starts."""
        return self.data_dir.with_name(self.data_dir.name + ".output.txt")

    @property
    def properties_path(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".server.properties")

    def start(self) -> ApacheKafka:
        """Start the node, formatting its storage first when that is empty; wait until ready."""
        assert self._process is None, "already started"
        self._choose_ports()
        self._write_properties()
        if not (self.data_dir / "meta.properties").exists():
            self._format_storage()
        options = (
            *(f"-Xmx{self.heap}", f"-Xms{self.heap}", "-server", "-XX:+UseG1GC"),
            *("-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
            *("-XX:+ExplicitGCInvokesConcurrent", *self.java_options),
        )
        command = java_command(
            "kafka.Kafka", str(self.properties_path), options=options, log_level="INFO"
        )
        launched = time.monotonic()
        with self.output_path.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            self._wait_until_ready(launched)
        except BaseException:
            self.kill()
            raise
        self.ready_s = time.monotonic() - launched
        return self

    def stop(self) -> None:
        """Clean shutdown: SIGTERM, and an error when the process does not end by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ApacheKafkaError(f"no end after SIGTERM; see {self.output_path}") from None

    def kill(self) -> None:
        """End the process like a crash would: SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Stop cleanly and start again on the same directory and ports."""
        self.stop()
        self.start()

    def __enter__(self) -> ApacheKafka:
        return self if self._process is not None else self.start()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _choose_ports(self) -> None:
        if self.port == 0:
            self.port, self.controller_port = free_ports(2)
        elif self.controller_port == 0:
            (self.controller_port,) = free_ports(1)

    def _write_properties(self) -> None:
        listeners = f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}"
        lines = {
            **STOCK_PROPERTIES,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "log.dirs": str(self.data_dir),
            **self.properties,
        }
        self.data_dir.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        self.properties_path.write_text(text)

    def _format_storage(self) -> None:
        run = subprocess.run(
            java_command(
                *("kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER_ID),
                *("-c", str(self.properties_path)),
                options=("-XX:TieredStopAtLevel=1",),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=READY_TIMEOUT_S,
            check=False,
        )
        if run.returncode != 0:
            raise ApacheKafkaError(f"formatting the storage failed:\n{run.stdout[-2000:]}")

    def _wait_until_ready(self, launched: float) -> None:
        assert self._process is not None
        while time.monotonic() < launched + READY_TIMEOUT_S:
            if self._process.poll() is not None:
                tail = self.output_path.read_text(errors="replace")[-2000:]
                raise ApacheKafkaError(f"ended with code {self._process.returncode}:\n{tail}")
            if _lists_a_broker(self.port):
                return
            time.sleep(0.02)
        raise ApacheKafkaError(f"not ready after {READY_TIMEOUT_S} s; see {self.output_path}")


def small_kafka(
    data_dir: Path, *, port: int = 0, properties: Mapping[str, str] | None = None
) -> ApacheKafka:
    """A node for tests: with little memory, and for a life of minutes.

    Java compiles once and simply: the better code of its second compiler costs more than it saves
    in that time. A benchmark wants it.
    """
    options = ("-XX:TieredStopAtLevel=1",)
    return ApacheKafka(
        data_dir, port=port, properties=properties, heap="512M", java_options=options
    )


def _lists_a_broker(port: int) -> bool:
    """Whether Metadata names a broker: then it is registered and no longer fenced.

    The listener answers ApiVersions some time before that, while CreateTopics still fails.
    """
    metadata_v1_without_topics = struct.pack(">hhihi", 3, 1, 1, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(5)
            frame = struct.pack(">i", len(metadata_v1_without_topics)) + metadata_v1_without_topics
            connection.sendall(frame)
            reply = connection.recv(12, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(reply) == 12 and struct.unpack(">iii", reply)[2] > 0

"""A bare-socket client as a process: small requests by count, bulk produce and fetch by bytes.

    python -m benchmarks.raw_client small --port P --topic T --kind produce --connections 50
    python -m benchmarks.raw_client produce --port P --topic T --connections 6
    python -m benchmarks.raw_client fetch --port P --topic T --connections 3

Each prints one JSON object. All requests are encoded before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable

from benchmarks import frames, group_frames
from benchmarks.loads import LoadError
from benchmarks.sockets import (
    ERROR_CODE,
    SIZE,
    ask,
    ask_until_served,
    check,
    connect,
    read_reply,
    wait_for_coordinator,
)

SMALL_RECORD_BYTES = 100
BULK_RECORDS = 100
BULK_RECORD_BYTES = 1015
BULK_DEPTH = 5
FETCH_BYTES = 1 << 20

_RECEIVE_BYTES = 1 << 16


def small_request(kind: str, topic: str) -> tuple[bytes, int | None]:
    """A request, and where its reply has an error code that must be 0."""
    if kind == "api-versions":
        return frames.api_versions(), frames.API_VERSIONS_ERROR_AT
    if kind == "metadata":
        return frames.metadata(topic), None
    if kind == "offset-commit":
        # The group has the topic's name, so that every measurement has a group of its own.
        request = group_frames.offset_commit(topic, topic)
        return request, group_frames.offset_commit_error_at(topic)
    batch = frames.record_batch(records=1, value_bytes=SMALL_RECORD_BYTES)
    return frames.produce(topic, 0, batch, acks=1), frames.produce_error_at(topic)


class _Pipeline:
    """One connection that keeps a fixed number of equal requests under way."""

    def __init__(self, port: int, request: bytes, error_at: int | None, depth: int) -> None:
        self.socket = connect(port)
        self.replies = 0
        self._request = request
        self._error_at = None if error_at is None else SIZE.size + error_at
        self._pending = b""
        check(ask(self.socket, request), error_at)
        self._depth = depth

    def begin(self) -> None:
        self.socket.sendall(self._request * self._depth)

    def turn(self) -> None:
        """Take what has arrived and send one new request for each whole reply in it."""
        data = self.socket.recv(_RECEIVE_BYTES)
        if not data:
            raise LoadError("the broker closed the connection")
        if self._pending:
            data = self._pending + data
        at, end, whole = 0, len(data), 0
        while end - at >= 4:
            following = at + 4 + SIZE.unpack_from(data, at)[0]
            if following > end:
                break
            if self._error_at is not None and ERROR_CODE.unpack_from(data, at + self._error_at)[0]:
                check(data[at + 4 :], self._error_at - 4)
            at = following
            whole += 1
        self._pending = data[at:] if at < end else b""
        if whole:
            self.replies += whole
            self.socket.sendall(self._request if whole == 1 else self._request * whole)


def small(args: argparse.Namespace) -> dict[str, float]:
    """Requests per second with `depth` requests under way on each connection."""
    request, error_at = small_request(args.kind, args.topic)
    if args.kind == "offset-commit" and error_at is not None:
        wait_for_coordinator(args.port, args.topic)
        # Kafka names a coordinator before it has taken over.
        ask_until_served(args.port, request, error_at)
    pipelines = [
        _Pipeline(args.port, request, error_at, args.depth) for _ in range(args.connections)
    ]
    started = time.perf_counter()
    until = started + args.seconds
    for pipeline in pipelines:
        pipeline.begin()
    if len(pipelines) == 1:
        while time.perf_counter() < until:
            pipelines[0].turn()
    else:
        by_descriptor = {pipeline.socket.fileno(): pipeline for pipeline in pipelines}
        with select.epoll() as poller:
            for descriptor in by_descriptor:
                poller.register(descriptor, select.EPOLLIN)
            while time.perf_counter() < until:
                for descriptor, _ in poller.poll(1.0):
                    by_descriptor[descriptor].turn()
    seconds = time.perf_counter() - started
    replies = sum(pipeline.replies for pipeline in pipelines)
    for pipeline in pipelines:
        pipeline.socket.close()
    return {"requests": replies, "seconds": seconds}


def bulk_batch() -> bytes:
    """A batch of 100 KiB, header included, give or take a few bytes."""
    return frames.record_batch(records=BULK_RECORDS, value_bytes=BULK_RECORD_BYTES)


def produce(args: argparse.Namespace) -> dict[str, float]:
    """Bytes of pre-encoded batches per second, a partition for each connection."""
    batch = bulk_batch()
    error_at = frames.produce_error_at(args.topic)

    def work(connection: socket.socket, index: int, until: float) -> int:
        request = frames.produce(args.topic, index, batch, acks=args.acks)
        sent = acknowledged = 0
        while acknowledged < sent or time.perf_counter() < until:
            while sent - acknowledged < BULK_DEPTH and time.perf_counter() < until:
                connection.sendall(request)
                sent += 1
            check(read_reply(connection), error_at)
            acknowledged += 1
        return acknowledged * len(batch)

    return _in_threads(args, work)


def fill(args: argparse.Namespace) -> dict[str, float]:
    """Write a fixed number of bulk batches into partition 0, for `fetch` to read."""
    request = frames.produce(args.topic, 0, bulk_batch(), acks=1)
    error_at = frames.produce_error_at(args.topic)
    with connect(args.port) as connection:
        for _ in range(args.batches):
            check(ask(connection, request), error_at)
    return {"batches": args.batches}


def fetch(args: argparse.Namespace) -> dict[str, float]:
    """Bytes per second of fetches of 1 MiB, walking over partition 0 again and again."""
    batches_per_fetch = FETCH_BYTES // len(bulk_batch())
    offsets = range(0, (args.batches - batches_per_fetch) * BULK_RECORDS, 10 * BULK_RECORDS)
    requests = [frames.fetch(args.topic, 0, offset, bytes_max=FETCH_BYTES) for offset in offsets]
    error_at = frames.fetch_error_at(args.topic)

    def work(connection: socket.socket, index: int, until: float) -> int:
        buffer = bytearray(2 * FETCH_BYTES)
        view = memoryview(buffer)
        received = 0
        position = index * len(requests) // args.connections
        while time.perf_counter() < until:
            connection.sendall(requests[position % len(requests)])
            size = _read_reply_into(connection, view)
            check(view, error_at)
            if size < FETCH_BYTES // 2:
                raise LoadError(f"a fetch of {FETCH_BYTES} bytes was answered with {size}")
            received += size
            position += 1
        return received

    return _in_threads(args, work)


def _read_reply_into(connection: socket.socket, view: memoryview) -> int:
    size = int(SIZE.unpack(connection.recv(4, socket.MSG_WAITALL))[0])
    have = 0
    while have < size:
        count = connection.recv_into(view[have:size], 0, socket.MSG_WAITALL)
        if not count:
            raise LoadError("the broker closed the connection")
        have += count
    return size


def _in_threads(
    args: argparse.Namespace, work: Callable[[socket.socket, int, float], int]
) -> dict[str, float]:
    """Run `work` on each connection in its own thread; threads cost little at 100 KiB a turn."""
    connections = [connect(args.port) for _ in range(args.connections)]
    totals = [0] * args.connections
    problems: list[Exception] = []

    def body(index: int, until: float) -> None:
        try:
            totals[index] = work(connections[index], index, until)
        except Exception as problem:
            problems.append(problem)

    started = time.perf_counter()
    threads = [
        threading.Thread(target=body, args=(index, started + args.seconds))
        for index in range(args.connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    for connection in connections:
        connection.close()
    if problems:
        raise problems[0]
    return {"bytes": sum(totals), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("small", "produce", "fill", "fetch"))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--kind", choices=("api-versions", "metadata", "produce", "offset-commit"))
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--acks", type=int, default=1)
    parser.add_argument("--batches", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    work = {"small": small, "produce": produce, "fill": fill, "fetch": fetch}[args.what]
    try:
        json.dump(work(args), sys.stdout)
    except (LoadError, OSError) as problem:
        sys.exit(str(problem) or type(problem).__name__)


if __name__ == "__main__":
    main()

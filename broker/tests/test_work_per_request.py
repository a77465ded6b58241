"""What a request costs, counted and not timed: calls of functions, and system calls.

A clock depends on the machine and on who else uses it; these counts are the same everywhere. They
say nothing about bytes, only about what is done for each request, which is most of what a small
request costs. Whoever makes a request cheaper records the new figure, so that it stays so;
docs/performance.md says what they were.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
import trio

from klamm.broker.kernel_ring import RingOrders
from klamm.broker.reactor import READABLE
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.groups.group_client import COMMIT_VERSION, commit_request, find_coordinator
from klamm.broker.tests.raw_client import (
    ACKS_ALL,
    ACKS_LEADER,
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    fetch,
    produce,
)
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData
from klamm.wire.schema import Message

PARTITIONS = 6
JAVA_BATCH_BYTES = 16_384
ROUNDS = 50
# A change of more than this is no accident.
GROWTH_MAX = 1.15


class Work(NamedTuple):
    """Of one request, on average."""

    calls: float
    system_calls: float


def produce_to_all(topic: str, acks: int) -> Message:
    """What a Java producer sends under load: a batch for each of its partitions."""
    request = produce(topic, acks=acks)
    request.topic_data[0].partition_data = [
        PartitionProduceData(index=index, records=batch(b"x" * JAVA_BATCH_BYTES))
        for index in range(PARTITIONS)
    ]
    return request


class Sent(NamedTuple):
    """A request, how many of it are sent in one piece, and whether it waits for the disk."""

    request: Message
    version: int
    count: int = 1
    is_synced: bool = False


SMALL_PRODUCE = produce("t", batch(b"x" * 100), acks=ACKS_LEADER)
LARGE_PRODUCE = produce("large", batch(b"x" * JAVA_BATCH_BYTES))
COMMIT = commit_request("g", {"t": {0: 1}})
REQUESTS = {
    "produce": Sent(SMALL_PRODUCE, PRODUCE_VERSION),
    "produce, five at once": Sent(SMALL_PRODUCE, PRODUCE_VERSION, 5),
    "produce to six partitions": Sent(produce_to_all("t", ACKS_LEADER), PRODUCE_VERSION),
    "produce, synced": Sent(produce("synced"), PRODUCE_VERSION, is_synced=True),
    "produce to six partitions, synced": Sent(
        produce_to_all("synced", ACKS_ALL), PRODUCE_VERSION, is_synced=True
    ),
    "fetch": Sent(fetch("t", max_bytes=1000), FETCH_VERSION),
    "fetch of a range of a file": Sent(fetch("large", max_bytes=1000), FETCH_VERSION),
    "metadata": Sent(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12),
    "offset commit": Sent(COMMIT, COMMIT_VERSION),
    "offset commit, five at once": Sent(COMMIT, COMMIT_VERSION, 5),
}
# Python 3.11 to 3.13 differ by one in a hundred.
RECORDED = {
    "produce": Work(165, 5),
    "produce, five at once": Work(140, 1.8),
    "produce to six partitions": Work(591, 10),
    "produce, synced": Work(275, 8),
    "produce to six partitions, synced": Work(887, 13),
    "fetch": Work(254, 6),
    "fetch of a range of a file": Work(291, 8),
    "metadata": Work(273, 4),
    "offset commit": Work(312, 5),
    "offset commit, five at once": Work(220, 1),
}


class CallCounter:
    """Counts what the thread calls while it is in force (as `sys.setprofile` wants it)."""

    def __init__(self) -> None:
        self.calls = 0
        self.system_calls: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            self.calls += 1
        elif event == "c_call":
            self.calls += 1
            if is_system_call(called):
                self.system_calls[called.__name__] += 1

    def counting(self, system_call: Callable[..., int]) -> Callable[..., int]:
        """The same call, which Python does not tell of because it is made by its number."""

        def counted(*arguments: Any) -> int:
            if sys.getprofile() is self:
                self.system_calls["syscall"] += 1
            return system_call(*arguments)

        return counted


def is_system_call(function: Any) -> bool:
    if isinstance(getattr(function, "__self__", None), (socket.socket, select.epoll)):
        return function.__name__ != "fileno"
    return bool(function.__module__ == "posix")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    # Without syncs nothing is done in other threads, and every reply is there at the end of a turn.
    with running_broker(tmp_path / "data", {"flush.before.ack": "false"}) as running:
        yield running


def syncs_ended(ring: RingOrders) -> int:
    """How many the kernel has told of, without taking what it says."""
    lines = Path(f"/proc/self/fdinfo/{ring.fd}").read_text().splitlines()
    told = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return int(told["CqTail"]) - int(told["CqHead"])


def work_for(broker: RunningBroker, client: RawClient, sent: Sent) -> Work:
    """Serve requests some times, one turn each, in the broker's own thread."""
    counter = CallCounter()
    kernel = broker.broker.flusher._kernel
    assert kernel is not None, "the tests need a kernel that syncs by itself"
    ring = kernel.orders
    assert isinstance(ring, RingOrders), "the figures are those of io_uring"
    ring._call = counter.counting(ring._call)

    def take_turn(profile: CallCounter | None) -> None:
        # Whether the next request is awaited for a moment depends on the clock.
        broker.broker.reactor._short_waits = 0
        sys.setprofile(profile)
        broker.broker.reactor._take_turn()
        sys.setprofile(None)

    def serve(profile: CallCounter | None) -> None:
        client.send(*[sent.request] * sent.count, version=sent.version)
        # What is synced is told of in one go, however long each of the files has taken.
        broker.broker.reactor.modify(ring.fd, 0)
        take_turn(profile)
        while syncs_ended(ring) < len(kernel.under_way):
            time.sleep(0.0001)
        broker.broker.reactor.modify(ring.fd, READABLE)
        if sent.is_synced:
            take_turn(profile)
        for _ in range(sent.count):
            client.receive()

    # The first ones are not counted: they compile what they need.
    for profile in (*[None] * ROUNDS, *[counter] * ROUNDS):
        trio.from_thread.run_sync(serve, profile, trio_token=broker._token)
    requests = ROUNDS * sent.count
    return Work(counter.calls / requests, counter.system_calls.total() / requests)


# Counting takes time, which must not end the turn.
@pytest.mark.usefixtures("_long_turns")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_costs_no_more_than_recorded(
    broker: RunningBroker, client: RawClient, name: str
) -> None:
    create_topic(client, "t", PARTITIONS)
    create_topic(client, "synced", PARTITIONS, {"flush.before.ack": "true"})
    create_topic(client, "large")
    find_coordinator(client)
    for request in (SMALL_PRODUCE, produce_to_all("synced", ACKS_ALL), LARGE_PRODUCE):
        client.call(request, PRODUCE_VERSION)
    work = work_for(broker, client, REQUESTS[name])
    recorded = RECORDED[name]
    assert work.system_calls <= recorded.system_calls, "there is a system call more"
    assert work.calls <= recorded.calls * GROWTH_MAX

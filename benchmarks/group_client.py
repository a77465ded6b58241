"""Groups as a process: how long members take to share partitions, and what heartbeats cost.

    python -m benchmarks.group_client rebalance --bootstrap B --topic T --members 10
    python -m benchmarks.group_client heartbeat --port P --pid BROKER --groups 1000

Each prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import sys
import time
import uuid
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, KafkaException

from benchmarks import group_frames as frames
from benchmarks.loads import LoadError
from benchmarks.machine import allow_many_files, cpu_s
from benchmarks.sockets import ask, check, connect, read_reply, wait_for_coordinator

PATIENCE_S = 30.0
# Members hear of a rebalance by their heartbeats, so that a slow heartbeat would hide the broker.
HEARTBEAT_INTERVAL_MS = 50
# Rebalances of which the mean or the median counts.
GROUPS = 5


class _Member:
    """One consumer and what it was assigned last."""

    def __init__(self, bootstrap: str, group: str, protocol: str) -> None:
        self.partitions: frozenset[int] = frozenset()
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "group.protocol": protocol,
        }
        if protocol == "classic":
            config["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
        self.consumer = Consumer(config)

    def subscribe(self, topic: str) -> None:
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, _consumer: object, partitions: list[Any]) -> None:
        self.partitions |= {partition.partition for partition in partitions}

    def _revoked(self, _consumer: object, partitions: list[Any]) -> None:
        self.partitions -= {partition.partition for partition in partitions}


def rebalance(args: argparse.Namespace) -> dict[str, float]:
    """Seconds until all members share all partitions, and until the rest do after one has left.

    Of several groups: the members of the new protocol hear of the leave by their next heartbeat,
    which all send at nearly the same time, so one group says little about the broker. Of the joins
    the median counts, because now and then a client waits for seconds before it asks. Of the
    leaves, which come at times spread evenly between two heartbeats, the mean: all ten members have
    just had a heartbeat when the last one has joined, and a broker that is asked sooner after it
    would only make them wait longer for the next.
    """
    joins, leaves = zip(
        *(
            _rebalance_once(args, HEARTBEAT_INTERVAL_MS / 1000 * (index + 0.5) / GROUPS)
            for index in range(GROUPS)
        ),
        strict=True,
    )
    return {"join s": statistics.median(joins), "leave s": statistics.fmean(leaves)}


def _rebalance_once(args: argparse.Namespace, pause_s: float) -> tuple[float, float]:
    group = f"rebalance-{uuid.uuid4()}"
    members = [_Member(args.bootstrap, group, args.protocol) for _ in range(args.members)]
    for member in members:
        # Connected and acquainted with the topic, so that only the group is measured.
        member.consumer.list_topics(args.topic, 10)
    started = time.perf_counter()
    for member in members:
        member.subscribe(args.topic)
    _wait_until_shared(members, args.members)
    joined = time.perf_counter()
    time.sleep(pause_s)
    left = time.perf_counter()
    members.pop().consumer.close()
    _wait_until_shared(members, args.members)
    shared_again = time.perf_counter()
    for member in members:
        member.consumer.close()
    return joined - started, shared_again - left


def _wait_until_shared(members: list[_Member], partitions: int) -> None:
    """Until each member has something, and all together have everything once."""
    gives_up_at = time.perf_counter() + PATIENCE_S
    while True:
        for member in members:
            message = member.consumer.poll(0)
            if message is not None and message.error() is not None:
                raise LoadError(str(message.error()))
        owned = [member.partitions for member in members]
        if all(owned) and sum(map(len, owned)) == partitions == len(frozenset().union(*owned)):
            return
        if time.perf_counter() > gives_up_at:
            raise LoadError(f"{sum(map(bool, owned))} of {len(members)} members have partitions")
        time.sleep(0.001)


def heartbeat(args: argparse.Namespace) -> dict[str, float]:
    """What a heartbeat costs the broker: many groups with one member each, a beat in a second."""
    allow_many_files()
    wait_for_coordinator(args.port, "heartbeat")
    with ExitStack() as stack:
        beats = []
        for number in range(args.groups):
            connection = stack.enter_context(connect(args.port))
            beats.append((connection, _join(connection, f"heartbeat-{number}-{uuid.uuid4()}")))
        cpu_before_s = cpu_s(args.pid)
        started = time.perf_counter()
        for beat in range(args.seconds):
            # Spread over the second, as the heartbeats of strangers are.
            for number, (connection, request) in enumerate(beats):
                pause = started + beat + number / len(beats) - time.perf_counter()
                if pause > 0:
                    time.sleep(pause)
                connection.sendall(request)
            for connection, _ in beats:
                check(read_reply(connection), frames.AFTER_THROTTLE_ERROR_AT)
        cpu_used_s = cpu_s(args.pid) - cpu_before_s
    return {"CPU µs/heartbeat": cpu_used_s * 1e6 / (args.groups * args.seconds)}


def _join(connection: socket.socket, group: str) -> bytes:
    """Become the only member of a group; the heartbeat to send from then on."""
    reply = ask(connection, frames.join_group(group))
    check(reply, frames.AFTER_THROTTLE_ERROR_AT)
    generation, member_id = frames.joined(reply)
    reply = ask(connection, frames.sync_group(group, generation, member_id))
    check(reply, frames.AFTER_THROTTLE_ERROR_AT)
    return frames.heartbeat(group, generation, member_id)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rebalance", "heartbeat"))
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pid", type=int, default=0)
    parser.add_argument("--topic", default="")
    parser.add_argument("--protocol", default="classic")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    work = {"rebalance": rebalance, "heartbeat": heartbeat}[args.what]
    try:
        json.dump(work(args), sys.stdout)
    except (LoadError, KafkaException, OSError) as problem:
        sys.exit(str(problem) or type(problem).__name__)


if __name__ == "__main__":
    main()

"""Ten thousand members, and joins of clients that are gone: nothing is stuck, others are served.

What single bad requests are answered with is compared with Apache Kafka in compat_tests/twin.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from compat_tests.clients.fixtures import Broker, OwnBroker
from compat_tests.groups.group import Group
from compat_tests.groups.kinds import CONFLUENT
from compat_tests.twin.codec import Plain, decode_response, encode_request
from compat_tests.twin.connection import Connection

MANY = 10_000
# A group holds one more by default: whoever comes before their sessions end finds room.
GONE = 999
AT_ONCE = 100
REPLY_TIMEOUT_S = 60
# Others must not notice; a machine that runs other tests beside needs some room.
OTHERS_WAIT_S_MAX = 3.0


class Caller:
    """A connection that sends many requests before it reads the replies."""

    def __init__(self, broker: Broker) -> None:
        self._connection = Connection(broker.port)

    def close(self) -> None:
        self._connection.close()

    def ask(self, api: str, version: int, body: Plain) -> Plain:
        (reply,) = self.ask_all(api, version, [body])
        return reply

    def ask_all(self, api: str, version: int, bodies: Sequence[Plain]) -> list[Plain]:
        replies = []
        for start in range(0, len(bodies), AT_ONCE):
            chunk = bodies[start : start + AT_ONCE]
            for body in chunk:
                self.send(api, version, body)
            for _ in chunk:
                frame = self._connection.receive_frame(REPLY_TIMEOUT_S)
                assert frame is not None
                replies.append(decode_response(api, version, frame)[0])
        return replies

    def send(self, api: str, version: int, body: Plain) -> None:
        self._connection.send_frame(encode_request(api, version, body))


@pytest.fixture(scope="module")
def caller(short_sessions: Broker) -> Iterator[Caller]:
    with closing(Caller(short_sessions)) as made:
        yield made


def joining(group: Group, **fields: Any) -> Plain:
    return {
        "group_id": group.id,
        "session_timeout": 2_000,
        "rebalance_timeout": 2_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
        **fields,
    }


def described(caller: Caller, group: Group) -> Plain:
    reply = caller.ask("describe_groups", 5, {"groups": [group.id]})
    found: Plain = reply["groups"][0]
    return found


def test_ids_that_nobody_uses(caller: Caller, group: Group) -> None:
    """Each is promised for the time of a session, and takes nobody's place afterwards."""
    # A group is there before: somebody has to find the coordinator first.
    topic = group.create_topic(1)
    member = group.start(CONFLUENT, "member", [topic])
    group.wait_until_shared([member], topic, 1)
    replies = caller.ask_all("join_group", 9, [joining(group)] * MANY)
    assert {reply["error_code"] for reply in replies} == {"member_id_required"}
    assert len({reply["member_id"] for reply in replies}) == MANY
    assert len(described(caller, group)["members"]) == 1
    group.crew.wait_until_polled(group.send(topic, 1, 5))
    # A rebalance waits for those who were promised a place, until their time is over.
    second = group.start(CONFLUENT, "second", [topic])
    group.crew.wait(lambda: second.partitions is not None, "a place for a second member")
    group.wait_until_shared([member, second], topic, 1)


def test_joins_of_clients_that_are_gone(
    caller: Caller, short_sessions: Broker, group: Group, new_group: Callable[[Broker], Group]
) -> None:
    """They joined, and closed the connection before the answer; the group gets over it."""
    topic = group.create_topic(1)
    for _ in range(GONE):
        with closing(Caller(short_sessions)) as gone:
            gone.send("join_group", 3, joining(group))
    began = time.monotonic()
    other = new_group(short_sessions)
    member = other.start(CONFLUENT, "other", [topic])
    other.wait_until_shared([member], topic, 1)
    assert time.monotonic() - began < OTHERS_WAIT_S_MAX
    late = group.start(CONFLUENT, "late", [topic])
    group.wait_until_shared([late], topic, 1)
    group.crew.wait(lambda: len(described(caller, group)["members"]) == 1, "the end of the others")


def test_ten_thousand_want_into_a_group_of_a_thousand(
    own_broker: OwnBroker, new_group: Callable[[Broker], Group]
) -> None:
    limits = {"group.consumer.max.size": "1000", "group.initial.rebalance.delay.ms": "0"}
    broker = own_broker(limits)
    broker.start()
    group, other = new_group(broker), new_group(broker)
    topic = group.create_topic(10)
    present = other.start(CONFLUENT, "present", [topic], session_ms=10_000)
    other.wait_until_shared([present], topic, 10)
    with closing(Caller(broker)) as many, closing(Caller(broker)) as aside:
        outcomes: collections.Counter[str] = collections.Counter()
        slowest_s = 0.0
        for start in range(0, MANY, 1000):
            numbers = range(start, start + 1000)
            bodies = [beat(group, f"member {number}", topic) for number in numbers]
            replies = many.ask_all("consumer_group_heartbeat", 1, bodies)
            outcomes.update(reply["error_code"] for reply in replies)
            began = time.monotonic()
            aside.ask("find_coordinator", 6, {"key_type": 0, "coordinator_keys": [other.id]})
            slowest_s = max(slowest_s, time.monotonic() - began)
        assert outcomes == {"none": 1000, "group_max_size_reached": MANY - 1000}
        assert slowest_s < OTHERS_WAIT_S_MAX
        reply = many.ask("consumer_group_describe", 1, {"group_ids": [group.id]})
        assert len(reply["groups"][0]["members"]) == 1000
    other.crew.wait_until_polled(other.send(topic, 10, 2))
    assert present.ended is None


def beat(group: Group, member: str, topic: str) -> Plain:
    return {
        "group_id": group.id,
        "member_id": member,
        "member_epoch": 0,
        "rebalance_timeout": 60_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }

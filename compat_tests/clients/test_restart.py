"""The broker goes away under clients that produce and consume: nothing is lost or doubled.

All clients run at once, each with a topic of its own, and the broker is stopped or killed and
started again several times. What a client was told is compared with what is stored afterwards.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack

import pytest

from compat_tests.clients.fixtures import Broker, OwnBroker, create_topic
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import ProducerMode
from compat_tests.clients.streaming import STREAMING_CLIENTS, following, producing
from compat_tests.history.recorder import History
from compat_tests.history.rules import violations

ROUNDS = 3
RECORDS_PER_ROUND = 100

IDEMPOTENT = ProducerMode(acks="all", idempotence=True)
ACKS_ALL = ProducerMode(acks="all", idempotence=False)
ACKS_1 = ProducerMode(acks="1", idempotence=False)


def go_away_and_come_back(broker: Broker, how: str) -> None:
    if how == "stopped":
        broker.stop()
    else:
        broker.kill()
    broker.start()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", [IDEMPOTENT, ACKS_ALL, ACKS_1], ids=str)
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_nothing_is_lost_or_doubled(
    own_broker: OwnBroker,
    request: pytest.FixtureRequest,
    how: str,
    mode: ProducerMode,
) -> None:
    broker = own_broker()
    broker.start()
    histories = {
        client: History(client, idempotent=mode.idempotence) for client in STREAMING_CLIENTS
    }
    java = functools.partial(_java, request)
    with ExitStack() as running:
        for client, history in histories.items():
            create_topic(broker.bootstrap, client)
            running.enter_context(following(client, broker.bootstrap, client, history, java=java))
            with_settings = functools.partial(producing, mode=mode, java=java)
            running.enter_context(with_settings(client, broker.bootstrap, client, history))
        for history in histories.values():
            history.wait_for("ok", RECORDS_PER_ROUND)
        for _ in range(ROUNDS):
            go_away_and_come_back(broker, how)
            for history in histories.values():
                history.wait_for_more("ok", RECORDS_PER_ROUND)
    for client, history in histories.items():
        check(broker, client, history)


def check(broker: Broker, topic: str, history: History) -> None:
    """Everything was settled, everything acknowledged is there, and the consumer saw it."""
    history.add_log(read_all(broker.bootstrap, topic))
    assert violations(history.events()) == []
    assert history.count("unknown") == 0
    assert history.count("ok") == history.count("invoke")
    assert history.count("poll") > ROUNDS * RECORDS_PER_ROUND


def read_all(bootstrap: str, topic: str) -> list[tuple[int, str]]:
    """Offset and value of every record in partition 0."""
    client = ConfluentKafka()
    count = client.positions(bootstrap, topic).latest
    records = client.consume(bootstrap, topic, count)
    return [(one.offset, (one.value or b"").decode()) for one in records]


def _java(request: pytest.FixtureRequest) -> JavaProcess:
    process: JavaProcess = request.getfixturevalue("java_process")
    return process

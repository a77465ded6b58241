"""kill -9 at any moment: what was acknowledged is there, where it was said to be."""

from __future__ import annotations

import random
import time

import pytest

from compat_tests.clients.fixtures import create_topic
from compat_tests.clients.model import ProducerMode
from compat_tests.history.recorder import History
from compat_tests.history.rules import violations
from compat_tests.process.clients import ACKS_1, IDEMPOTENT, following, producing, read_all
from compat_tests.process.fixtures import StartKlamm

ROUNDS = 8
RECORDS = 50
LONGEST_ROUND_S = 0.4

# A segment is rolled every few moments, so that kills come in the middle of that, too.
SHORT_SEGMENTS = {"segment.ms": "100"}


@pytest.mark.parametrize("mode", [IDEMPOTENT, ACKS_1], ids=str)
def test_kills_at_random_moments(start_klamm: StartKlamm, mode: ProducerMode) -> None:
    klamm = start_klamm()
    create_topic(klamm.bootstrap, "topic", config=SHORT_SEGMENTS)
    history = History(idempotent=mode.idempotence)
    chance = random.Random(str(mode))
    with (
        following(klamm.bootstrap, "topic", history),
        producing(klamm.bootstrap, "topic", history, mode),
    ):
        for _ in range(ROUNDS):
            history.wait_for_more("ok", RECORDS)
            time.sleep(chance.uniform(0, LONGEST_ROUND_S))
            klamm.kill()
            assert not klamm.is_marked_clean
            klamm.start()
        history.wait_for_more("ok", RECORDS)
    history.add_log(read_all(klamm.bootstrap, "topic"))
    assert violations(history.events()) == []
    assert history.count("unknown") == 0
    assert history.count("ok") == history.count("invoke") > ROUNDS * RECORDS
    assert klamm.complaints() == []
    assert len(list(klamm.data_dir.glob("topic-0/*.log"))) > ROUNDS


def test_kills_while_it_recovers_from_a_kill(start_klamm: StartKlamm) -> None:
    klamm = start_klamm()
    create_topic(klamm.bootstrap, "topic", config=SHORT_SEGMENTS)
    history = History(idempotent=True)
    with producing(klamm.bootstrap, "topic", history, IDEMPOTENT):
        history.wait_for_more("ok", 10 * RECORDS)
        klamm.kill()
        # Nobody waits for these starts: each is killed a little later than the one before.
        for attempt in range(4):
            klamm.start_and_kill_after(0.15 * (attempt + 1))
        klamm.start()
        history.wait_for_more("ok", RECORDS)
    history.add_log(read_all(klamm.bootstrap, "topic"))
    assert violations(history.events()) == []
    assert history.count("ok") == history.count("invoke")


@pytest.mark.parametrize("mode", [IDEMPOTENT, ACKS_1], ids=str)
def test_sigterm_while_busy(start_klamm: StartKlamm, mode: ProducerMode) -> None:
    klamm = start_klamm()
    topics = ("one", "two", "three")
    histories = {topic: History(topic, idempotent=mode.idempotence) for topic in topics}
    for topic in topics:
        create_topic(klamm.bootstrap, topic)
    clients = [producing(klamm.bootstrap, topic, histories[topic], mode) for topic in topics]
    with clients[0], clients[1], clients[2]:
        for _ in range(2):
            for history in histories.values():
                history.wait_for_more("ok", RECORDS)
            klamm.stop()
            assert klamm.is_marked_clean
            klamm.start()
    for topic, history in histories.items():
        history.add_log(read_all(klamm.bootstrap, topic))
        assert violations(history.events()) == []
        assert history.count("ok") == history.count("invoke")
    assert klamm.complaints() == []

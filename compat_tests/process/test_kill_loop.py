"""Two hundred kills under idempotent producers with acks=all, and a group that commits offsets.

One topic is compacted all the time, and the other one loses its oldest records now and then.

Two brokers are killed at the same time, each with clients of its own, so that both cores have work.
Half of the kills come while the broker serves, the others while it starts or recovers, at moments
that a seed chooses. Now and then the directory is checked offline: as the kill left it, and after a
recovery and a clean stop.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat_tests.clients.fixtures import create_topic
from compat_tests.history.feed import unfed
from compat_tests.history.recorder import History
from compat_tests.history.rules import violations
from compat_tests.process.clients import IDEMPOTENT, IMPATIENT, following, producing, read_all
from compat_tests.process.committing import committing
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.keyed import producing_keyed, read_keyed
from compat_tests.process.sampling import sampling
from compat_tests.process.state import add_state
from compat_tests.process.watched import WatchedKlamm

BROKERS = 2
KILLS = 100
CHECKED_EVERY = 20
EARLY_SHARE = 0.5
EARLY_S = 0.5
SERVING_S = 0.15
PAUSE_S = 0.005

CUT = "after an unclean stop"
COMPACTED = " .deleted, left over from a deletion; the next start clears them"

# Segments roll and checkpoints are written all the time, so that kills come in the middle of them.
PROPERTIES = {
    "log.flush.offset.checkpoint.interval.ms": "50",
    "offsets.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "50",
}
SHORT_SEGMENTS = {"segment.ms": "500", "index.interval.bytes": "200"}
EAGER_COMPACTION = {
    **SHORT_SEGMENTS,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
}

# What is claimed of both topics, and what of each alone.
RULES = ("I1 lost", "I2 two values", "I3 doubled", "I4 out of order", "I5 phantom")
RULES_OF_TOPIC = (
    *(*RULES, "I6 gap", "I7 commit", "I8 watermark", "I14 leader epoch"),
    *("I15 replay", "I16 recovery", "I17 liveness"),
)
RULES_OF_COMPACTED = (*RULES, "I13 compaction")


# Two minutes where nobody else works. Each wait in it has a limit of its own: this one need not be
# close, and a busy machine needs several times as long for two hundred starts.
@pytest.mark.timeout(1200)
def test_two_hundred_kills(start_klamm: StartKlamm, tmp_path: Path) -> None:
    brokers = [start_klamm(PROPERTIES) for _ in range(BROKERS)]
    with ThreadPoolExecutor(BROKERS) as threads:
        loops = [
            threads.submit(kill_loop, klamm, seed, tmp_path / f"history-{seed}")
            for seed, klamm in enumerate(brokers)
        ]
        for loop in loops:
            loop.result()


def kill_loop(klamm: WatchedKlamm, seed: int, path: Path) -> None:
    """Kill a broker again and again while clients work, and judge what they saw."""
    chance = random.Random(seed)
    bootstrap = klamm.bootstrap
    create_topic(bootstrap, "topic", config=SHORT_SEGMENTS)
    create_topic(bootstrap, "compacted", config=EAGER_COMPACTION)
    history, keyed = History(idempotent=True), History("compacted", idempotent=True)
    with (
        following(bootstrap, "topic", history, IMPATIENT),
        committing(bootstrap, "topic", history, IMPATIENT),
        sampling(bootstrap, "topic", history),
        producing_keyed(bootstrap, "compacted", keyed, IMPATIENT),
        producing(*(bootstrap, "topic", history, IDEMPOTENT), settings=IMPATIENT, pause_s=PAUSE_S),
    ):
        kills = checks = 0
        while kills < KILLS:
            # Its clients are back, and have requests under way.
            for one in (history, keyed):
                one.wait_for_more("ok", 1)
            time.sleep(chance.uniform(0, SERVING_S))
            history.add_fault("kill")
            klamm.kill()
            kills += 1
            while kills < KILLS and chance.random() < EARLY_SHARE:
                klamm.start_and_kill_after(chance.uniform(0, EARLY_S))
                kills += 1
            if kills >= (checks + 1) * CHECKED_EVERY:
                checks += 1
                check(klamm, history)
            klamm.start()
            history.add_fault("kill", is_over=True)
        history.wait_for_more("ok", 100)
    add_state(history, bootstrap, "live")
    klamm.restart()
    add_state(history, bootstrap, "replayed")
    history.add_log(read_all(bootstrap, "topic"))
    keyed.add_log(read_keyed(bootstrap, "compacted"))
    judge(history, RULES_OF_TOPIC, path.with_suffix(".jsonl"))
    judge(keyed, RULES_OF_COMPACTED, path.with_suffix(".compacted.jsonl"))
    assert history.count("poll") > KILLS
    assert history.count("committed") > KILLS / 4
    # A kill in the middle of a write leaves half of a batch.
    assert all(CUT in line for line in klamm.complaints())


def judge(history: History, rules: Sequence[str], path: Path) -> None:
    """All rules are kept, and those of them that are claimed had something to judge."""
    history.save(path)
    assert violations(history.events()) == []
    assert unfed(history.events(), rules) == []
    assert history.count("unknown") == 0
    assert history.count("ok") == history.count("invoke") > KILLS


def check(klamm: WatchedKlamm, history: History) -> None:
    """A kill leaves no fault, and a recovery nothing at all but what was compacted meanwhile."""
    faults = [line for line in klamm.check() if ": note: " not in line]
    klamm.start()
    klamm.stop()
    # The files that a compaction has replaced stay until their time or the next start.
    faults += [line for line in klamm.check() if COMPACTED not in line]
    history.add_check(faults)

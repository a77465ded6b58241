"""A group that commits offsets and asks for them, whatever happens to the broker meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.clients import librdkafka
from compat_tests.history.events import Event
from compat_tests.history.recorder import History
from compat_tests.process.beside import beside

GROUP = "group"
PROCESS = "committer"
PAUSE_S = 0.02
ASK_TIMEOUT_S = 5.0


@contextmanager
def committing(
    bootstrap: str, topic: str, history: History, settings: dict[str, Any]
) -> Iterator[None]:
    """Commit 1, 2, 3 … for partition 0, and look at what is committed, until the block ends."""
    work = partial(_commit, bootstrap, topic, history, settings)
    with beside("the group that commits", history, work):
        yield


def _commit(
    bootstrap: str,
    topic: str,
    history: History,
    settings: dict[str, Any],
    stopping: threading.Event,
) -> None:
    consumer = Consumer(librdkafka.consumer_settings(bootstrap) | settings | {"group.id": GROUP})
    try:
        number = 0
        while not stopping.wait(PAUSE_S):
            number += 1
            tried = Event(
                "invoke", "commit", PROCESS, offset=number, value=f"commit {number}", group=GROUP
            )
            history.record(tried)
            history.record(_ended(consumer, topic, tried))
            _ask(consumer, topic, history)
    finally:
        consumer.close()


def _ended(consumer: Consumer, topic: str, tried: Event) -> Event:
    """Commit, and say how that ended; without an answer nobody knows."""
    offsets = [TopicPartition(topic, 0, tried.offset)]
    try:
        (done,) = consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        return replace(tried, type="unknown")
    return replace(tried, type="unknown" if done.error else "ok")


def _ask(consumer: Consumer, topic: str, history: History) -> None:
    """Ask for what is committed; a broker that is away gives no answer."""
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=ASK_TIMEOUT_S)
    except KafkaException:
        return
    if found.error is None:
        # A negative offset stands for nothing.
        history.record(Event("ok", "committed", PROCESS, offset=max(found.offset, -1), group=GROUP))

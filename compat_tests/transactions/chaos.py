"""What is done to a workload: its broker and its workers are killed, paused and replaced by chance,
and what all of them have told becomes one history."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from compat_tests.clients.fixtures import Broker
from compat_tests.clients.model import READ_COMMITTED, READ_UNCOMMITTED
from compat_tests.history.events import Event
from compat_tests.history.rules import violations
from compat_tests.transactions.reading import read_topic
from compat_tests.transactions.workers import Place, Worker

# Short enough that a transaction without its producer does not hold readers up for long.
BROKER_SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}
SAMPLE_TIMEOUT_MS = 5_000
WAIT_TIMEOUT_S = 120.0


class Chaos:
    """
    Args:
        topic: what is written to in transactions.
        places: who writes.
        readers: who reads; nothing is done to them.
        seed: of everything that is left to chance.
    """

    def __init__(
        self,
        broker: Broker,
        topic: str,
        partitions: int,
        places: Sequence[Place],
        readers: Sequence[Worker],
        seed: int,
    ) -> None:
        self.broker = broker
        self.topic = topic
        self.partitions = partitions
        self.places = places
        self.readers = readers
        self.events: list[Event] = []
        self._chance = random.Random(seed)

    def tell(self, event: Event) -> None:
        self.events.append(replace(event, time=time.monotonic()))

    # --- faults ---

    def run(self, duration_s: float) -> None:
        """Once everybody works, disturb it for so long; each kind of fault comes in each round."""
        self._until(lambda: all(place.has_committed for place in self.places), "a commit")
        faults: list[Callable[[], None]] = [
            self._kill_broker,
            self._pause_broker,
            self._kill_worker,
            self._replace_worker,
            self._pause_worker,
        ]
        deadline = time.monotonic() + duration_s
        while True:
            self._chance.shuffle(faults)
            for fault in faults:
                self.keep_working(self._chance.uniform(0.3, 2.0))
                self._sample()
                if time.monotonic() > deadline:
                    return
                fault()

    def keep_working(self, seconds: float) -> None:
        """Wait, and start a successor of each worker that has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for place in self.places:
                if not place.workers or place.newest.is_over:
                    place.start()
            time.sleep(0.1)

    def _kill_broker(self) -> None:
        self.tell(Event("invoke", "fault", name="kill the broker"))
        self.broker.kill()
        self.broker.start()
        self.tell(Event("ok", "fault", name="kill the broker"))

    def _pause_broker(self) -> None:
        pid = self.broker.pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self._chance.uniform(0.2, 2.0))
        os.kill(pid, signal.SIGCONT)

    def _worker(self) -> Worker | None:
        """Somebody who has begun, if there is anybody."""
        newest = [place.newest for place in self.places]
        ready = [worker for worker in newest if worker.is_ready and not worker.is_over]
        return self._chance.choice(ready) if ready else None

    def _kill_worker(self) -> None:
        worker = self._worker()
        if worker is not None:
            worker.kill()

    def _pause_worker(self) -> None:
        worker = self._worker()
        if worker is not None:
            worker.pause()
            time.sleep(self._chance.uniform(0.2, 3.0))
            worker.resume()

    def _replace_worker(self) -> None:
        """The old one believes that nothing has happened, and goes on behind its successor."""
        worker = self._worker()
        if worker is None:
            return
        place = next(one for one in self.places if one.newest is worker)
        worker.pause()
        place.start()
        self._until(lambda: place.newest.is_ready or place.newest.is_over, "a successor")
        self.keep_working(self._chance.uniform(0.0, 1.0))
        worker.resume()

    def _until(self, condition: Callable[[], bool], wanted: str) -> None:
        deadline = time.monotonic() + WAIT_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{wanted} did not come")
            self.keep_working(0.1)

    def _sample(self) -> None:
        """Where what is stable ends. What was seen before it was asked for lies below."""
        asked = time.monotonic()
        try:
            consumer = KafkaConsumer(
                bootstrap_servers=self.broker.bootstrap,
                isolation_level=READ_COMMITTED,
                api_version_auto_timeout_ms=SAMPLE_TIMEOUT_MS,
                metrics_enabled=False,
            )
        except KafkaError:
            return
        try:
            where = [TopicPartition(self.topic, number) for number in range(self.partitions)]
            for one, end in consumer.end_offsets(where, timeout_ms=SAMPLE_TIMEOUT_MS).items():
                mark = Event("ok", "watermarks", topic=one.topic, partition=one.partition)
                self.events.append(replace(mark, last_stable=end, time=asked))
        except KafkaError:
            pass
        finally:
            consumer.close()

    # --- the end ---

    def stop(self) -> None:
        for place in self.places:
            for worker in place.workers:
                worker.stop()

    def kill_all(self) -> None:
        """Leave no process behind, also when something has gone wrong."""
        for worker in (*self.readers, *(one for place in self.places for one in place.workers)):
            if not worker.is_over:
                worker.kill()

    def judge(self, topics: Sequence[str], history: Path) -> list[Event]:
        """Read everything that is there, and check all that was told.

        Returns:
            The history, which is also written to a file.
        """
        for topic in topics:
            self._read(topic, READ_UNCOMMITTED, "")
            self._read(topic, READ_COMMITTED, "committed")
        for reader in self.readers:
            reader.stop()
        told = [event for place in self.places for one in place.workers for event in one.events]
        told += [event for reader in self.readers for event in reader.events]
        events = sorted((*told, *self.events), key=lambda event: event.time)
        events = with_ends(events)
        history.write_text("".join(f"{event.line()}\n" for event in events), encoding="utf-8")
        assert violations(events) == [], history
        return events

    def _read(self, topic: str, isolation: str, name: str) -> None:
        numbers = range(self.partitions)
        ends = dict.fromkeys(numbers, 0)
        found = read_topic(self.broker.bootstrap, topic, numbers, isolation)
        for partition, offset, value in found:
            ends[partition] = offset + 1
            place = Event("ok", "read", topic=topic, partition=partition, offset=offset)
            self.tell(replace(place, value=value, isolation=name))
        for partition, end in ends.items():
            place = Event("ok", "end", topic=topic, partition=partition, offset=end)
            self.tell(replace(place, isolation=name))


def with_ends(events: Sequence[Event]) -> list[Event]:
    """Nobody knows of what a process had sent when it was killed."""
    ended = {event.value for event in events if event.action == "send" and event.type != "invoke"}
    left = [
        Event(
            "unknown",
            "send",
            event.process,
            event.time,
            topic=event.topic,
            partition=event.partition,
            value=event.value,
        )
        for event in events
        if event.action == "send" and event.type == "invoke" and event.value not in ended
    ]
    return [*events, *left]

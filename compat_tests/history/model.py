"""Histories that a good broker could have made, by chance from a seed; for the checker's tests."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import replace

from compat_tests.history.events import Event, Type
from compat_tests.history.model_transactions import run_transactions

TOPIC = "topic"
COMPACTED = "compacted"
TRIMMED = "trimmed"
GROUP = "group"
PRODUCERS = ("p0", "p1")
OUTCOMES: tuple[Type, ...] = ("ok", "ok", "ok", "ok", "unknown", "fail")


class Model:
    """A broker as simple as it can be: a list, and clients that work with it.

    Attributes:
        events: the history so far.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.events: list[Event] = []
        self._time = 0.0
        self._epoch = 0
        self._log: list[tuple[str, int, Event]] = []
        self._sent = 0
        self._polled = 0
        self._commits = 0
        self._committed = -1

    def run(self) -> list[Event]:
        """Work for a while, with faults in between, and look at everything at the end."""
        self._add(Event("ok", "assign", "c", topic=TOPIC, offset=0, group=GROUP, generation=1))
        # Each of the kinds happens at least once, and most of them again and again.
        steps: list[Callable[[], None]] = [
            self._send,
            self._poll,
            self._commit,
            self._fault,
            self._watermarks,
        ]
        for _ in range(4):
            self.chance.shuffle(steps)
            for step in steps:
                for _ in range(self.chance.randrange(1, 5)):
                    step()
        self._send("ok")
        self._send("unknown")
        self._poll(count=len(self._log))
        self._compact()
        self._trim()
        run_transactions(self.chance, self._add)
        for offset, (value, epoch, invoked) in enumerate(self._log):
            self._add(self._record(offset, value, epoch, invoked))
        self._add(Event("ok", "end", topic=TOPIC, offset=len(self._log)))
        return self.events

    def _add(self, event: Event) -> None:
        self._time += self.chance.random()
        self.events.append(replace(event, time=round(self._time, 3)))

    def _record(self, offset: int, value: str, epoch: int, invoked: Event) -> Event:
        return Event(
            "ok",
            "read",
            topic=TOPIC,
            offset=offset,
            value=value,
            leader_epoch=epoch,
            producer_id=invoked.producer_id,
            producer_epoch=0,
            sequence=invoked.sequence,
        )

    def _send(self, ends: Type | None = None) -> None:
        outcome = self.chance.choice(OUTCOMES) if ends is None else ends
        process = self.chance.choice(PRODUCERS)
        value = f"v{self._sent}"
        invoked = Event(
            "invoke",
            "send",
            process,
            topic=TOPIC,
            value=value,
            idempotent=True,
            producer_id=PRODUCERS.index(process),
            producer_epoch=0,
            sequence=self._sent,
        )
        self._sent += 1
        self._add(invoked)
        offset = len(self._log)
        if outcome == "ok" or (outcome == "unknown" and self.chance.random() < 0.5):
            self._log.append((value, self._epoch, invoked))
        told = offset if outcome == "ok" else -1
        self._add(Event(outcome, "send", process, topic=TOPIC, value=value, offset=told))

    def _poll(self, count: int = 3) -> None:
        for offset in range(self._polled, min(self._polled + count, len(self._log))):
            record = self._record(offset, *self._log[offset])
            self._add(replace(record, action="poll", process="c"))
            self._polled = offset + 1

    def _commit(self) -> None:
        name = f"c{self._commits}"
        self._commits += 1
        tried = Event(
            "invoke", "commit", "c", topic=TOPIC, group=GROUP, value=name, offset=self._polled
        )
        self._add(tried)
        outcome = self.chance.choice(OUTCOMES)
        if outcome == "ok" or (outcome == "unknown" and self.chance.random() < 0.5):
            self._committed = self._polled
        self._add(replace(tried, type=outcome))

    def _fault(self) -> None:
        state = f"{self._committed} of {self._sent}"
        self._add(Event("ok", "state", name="group", phase="live", value=state))
        self._add(Event("invoke", "fault", name="kill"))
        self._epoch += 1
        self._add(Event("ok", "check", value=None))
        self._add(Event("ok", "fault", name="kill"))
        self._add(Event("ok", "state", name="group", phase="replayed", value=state))
        self._add(Event("ok", "committed", "c", topic=TOPIC, group=GROUP, offset=self._committed))
        self._send("ok")

    def _watermarks(self) -> None:
        end = len(self._log)
        self._add(
            Event(
                "ok",
                "watermarks",
                topic=TOPIC,
                leader_epoch=self._epoch,
                log_start=0,
                last_stable=end,
                high_watermark=end,
                log_end=end,
            )
        )

    def _compact(self) -> None:
        """Another topic, of which compaction has left the last value of each key."""
        self._add(Event("ok", "topic", topic=COMPACTED, compacted=True))
        newest: dict[str, tuple[int, str]] = {}
        for offset in range(12):
            key = f"k{self.chance.randrange(3)}"
            value = f"w{offset}"
            self._add(
                Event(
                    "invoke", "send", "p0", topic=COMPACTED, value=value, key=key, idempotent=True
                )
            )
            self._add(Event("ok", "send", "p0", topic=COMPACTED, value=value, offset=offset))
            newest[key] = (offset, value)
        for offset, value in sorted(newest.values()):
            self._add(Event("ok", "read", topic=COMPACTED, offset=offset, value=value))
        self._add(Event("ok", "end", topic=COMPACTED, offset=12))

    def _trim(self) -> None:
        """Another topic, of which the oldest records are deleted while it grows."""
        for start in range(3):
            end = start + 5
            marks = Event("ok", "watermarks", topic=TRIMMED, leader_epoch=self._epoch)
            self._add(
                replace(
                    marks, log_start=start, last_stable=end, high_watermark=end, log_end=end + 1
                )
            )


@functools.cache
def good_history(seed: int) -> list[Event]:
    """Return a history without a fault, which nobody changes."""
    return Model(seed).run()

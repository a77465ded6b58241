"""A history in the making: several threads add to it, and a test waits for what it wants."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from compat_tests.history.events import Event

# What the clients of a test report, by the name that it is counted under.
Kind = Literal["invoke", "ok", "fail", "unknown", "poll"]

WAIT_TIMEOUT_S = 60.0


class History:
    """Events of one partition in the order in which they happened.

    Args:
        topic: what the events are about.
        idempotent: whether the producers promise that each value is stored once and in order.
    """

    def __init__(
        self, topic: str = "topic", partition: int = 0, *, idempotent: bool = False
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._idempotent = idempotent
        self._events: list[Event] = []
        self._counts: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._began = time.monotonic()

    def add(
        self,
        kind: Kind,
        value: str,
        offset: int = -1,
        *,
        process: str = "",
        key: str | None = None,
        leader_epoch: int = -1,
    ) -> None:
        """Add what a producer or a consumer did or saw."""
        if kind == "poll":
            event = Event("ok", "poll", process or "consumer", leader_epoch=leader_epoch)
        else:
            is_idempotent = self._idempotent and kind == "invoke"
            event = Event(kind, "send", process or "producer", key=key, idempotent=is_idempotent)
        self.record(replace(event, offset=offset, value=value), kind)

    def record(self, event: Event, kind: str = "") -> None:
        """Add an event of the partition, or of the broker as a whole, with the time of now.

        Args:
            kind: the name under which it is counted; that of its action when not given.
        """
        has_place = event.action not in ("fault", "check", "state")
        with self._changed:
            self._events.append(
                replace(
                    event,
                    time=round(time.monotonic() - self._began, 6),
                    topic=self._topic if has_place else "",
                    partition=self._partition if has_place else 0,
                )
            )
            self._counts[kind or event.action] += 1
            self._changed.notify_all()

    def add_start(self, offset: int, *, process: str = "consumer") -> None:
        """Add that a consumer reads from an offset on."""
        self.record(Event("ok", "assign", process, offset=offset))

    def add_fault(self, name: str, *, is_over: bool = False) -> None:
        """Add that something is done to the broker, or that it may serve again."""
        self.record(Event("ok" if is_over else "invoke", "fault", name=name))

    def add_check(self, faults: Iterable[str]) -> None:
        """Add what the broker's offline checker said after a recovery."""
        found = "; ".join(faults)
        self.record(Event("fail" if found else "ok", "check", value=found or None))

    def add_log(self, stored: Iterable[tuple[int, str]]) -> None:
        """Add offset and value of every record in the partition, read when all is over."""
        end = 0
        for offset, value in stored:
            self.record(Event("ok", "read", offset=offset, value=value))
            end = offset + 1
        self.record(Event("ok", "end", offset=end))

    def fail(self, failure: BaseException) -> None:
        """A client broke off; whoever waits gets its error."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    # --- what is in it ---

    def events(self) -> list[Event]:
        with self._changed:
            return list(self._events)

    def count(self, kind: str) -> int:
        with self._changed:
            return self._counts[kind]

    def save(self, path: Path) -> None:
        """Write the history for the checker's own command."""
        lines = [event.line() for event in self.events()]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    # --- waiting ---

    def wait_for(self, kind: Kind, count: int) -> None:
        """Wait until there are ``count`` events of a kind in all.

        Raises:
            TimeoutError: when they do not come.
        """
        self._wait(lambda: self._counts[kind] >= count, f"{count} events {kind!r}")

    def wait_for_more(self, kind: Kind, count: int) -> None:
        """Wait until there are ``count`` events of a kind beyond those of now."""
        self.wait_for(kind, self.count(kind) + count)

    def has_within(self, kind: Kind, count: int, seconds: float) -> bool:
        """Whether there are ``count`` events of a kind in all, now or within some seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._counts[kind] >= count, seconds)

    def wait_for_value(self, kind: Kind, value: str) -> None:
        """Wait until there is an event of a kind with this value."""
        action = "poll" if kind == "poll" else "send"
        event_type = "ok" if kind == "poll" else kind
        self._wait(
            lambda: any(
                event.type == event_type and event.action == action and event.value == value
                for event in self._events
            ),
            f"{kind!r} of {value!r}",
        )

    def _wait(self, condition: Callable[[], bool], wanted: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or condition(), WAIT_TIMEOUT_S)
            if self._failure is not None:
                raise self._failure
            if not condition():
                raise TimeoutError(f"waited for {wanted}; there are {dict(self._counts)}")

"""The same requests to both brokers, each over its own connection, and their answers compared."""

from __future__ import annotations

import os
import select
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compat_tests.twin.codec import ZERO_UUID, Plain, decode_response, encode_request
from compat_tests.twin.comparison import Difference, Rule, differences
from compat_tests.twin.connection import REPLY_TIMEOUT_S, Connection
from compat_tests.twin.deviations import deviations
from compat_tests.twin.may_differ import KEYED, RULES

CLOSED: Plain = {"connection": "closed"}
SILENT: Plain = {"connection": "silent"}
SHOWN_MAX = 20

ASKED: set[tuple[str, int]] = set()
"""APIs and versions in which both brokers were asked, since a test began."""


def _note(line: str) -> None:
    """Append to the file that KLAMM_TWIN_TRANSCRIPT names: what was asked, what Kafka said."""
    path = os.environ.get("KLAMM_TWIN_TRANSCRIPT")
    if path:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition("::")[2]
        with open(path, "a", encoding="utf-8") as transcript:
            transcript.write(f"{test}: {line}\n")


class Side:
    """One of the two brokers, with what it alone chose: its port, its topic ids, member ids."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.members: dict[str, str] = {}
        """The part of a member id that is random, and what it is called on both sides."""
        self.producers: dict[int, str] = {}
        """Producer ids that this broker gave, and what they are called on both sides."""
        self._labels: dict[uuid.UUID, str] = {}
        self._newest: dict[str, uuid.UUID] = {}

    def topic_id(self, topic: str) -> uuid.UUID:
        """The id of a topic as this broker last named it; for others one that no broker knows."""
        return self._newest.get(topic) or uuid.uuid5(uuid.NAMESPACE_OID, topic)

    def topic_name(self, topic_id: uuid.UUID) -> str:
        """The topic that this broker gave an id to."""
        return next(name for name, known in self._newest.items() if known == topic_id)

    def with_names_for_ids(self, reply: Any) -> Any:
        """A reply with each topic id and member id replaced by a label that both brokers share."""
        self.learn(reply)
        return self._replace(reply)

    def learn(self, value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                self.learn(item)
        if not isinstance(value, dict):
            return
        topic, topic_id = value.get("name"), value.get("topic_id", ZERO_UUID)
        refused = value.get("error_code", "none") != "none"
        if topic and not refused and topic_id not in (ZERO_UUID, *self._labels):
            count = sum(label.startswith(f"{topic}#") for label in self._labels.values())
            self._labels[topic_id] = f"{topic}#{count + 1}"
            self._newest[topic] = topic_id
        for item in value.values():
            self.learn(item)

    def _replace(self, value: Any) -> Any:
        if isinstance(value, uuid.UUID):
            return self._labels.get(value, str(value))
        if isinstance(value, str):
            for random_part, label in self.members.items():
                value = value.replace(random_part, label)
            return value
        if isinstance(value, list):
            return [self._replace(item) for item in value]
        if isinstance(value, dict):
            return {key: self._replace_field(key, item) for key, item in value.items()}
        return value

    def _replace_field(self, key: str, value: Any) -> Any:
        if key == "producer_id":
            return self.producers.get(value, value)
        return self._replace(value)


@dataclass(frozen=True)
class Pair:
    """The two replies; index it with a side to get that broker's own."""

    kafka: Plain
    other: Plain
    sides: tuple[Side, Side]

    def __getitem__(self, side: Side) -> Plain:
        return self.kafka if side is self.sides[0] else self.other


Explain = Callable[[Plain, Plain], str | None]
Body = Plain | Callable[[Side], Plain]


class Conversation:
    """A connection to each broker. Requests go to both before either answer is awaited."""

    def __init__(self, sides: tuple[Side, Side], *, same_broker: bool) -> None:
        self.sides = sides
        self._same_broker = same_broker
        self._correlation_id = 0
        self._is_closed = False
        self._connections = {side.name: Connection(side.port) for side in sides}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def connection(self, side: Side) -> Connection:
        return self._connections[side.name]

    def send(self, api: str, version: int, body: Body) -> None:
        """Send a request to both brokers and do not wait."""
        self._expect_open()
        self._correlation_id += 1
        ASKED.add((api, version))
        _note(f"{api} v{version} <- {body(self.sides[0]) if callable(body) else body}")
        for side in self.sides:
            plain = body(side) if callable(body) else body
            frame = encode_request(api, version, plain, correlation_id=self._correlation_id)
            self.connection(side).send_frame(frame)

    def send_raw(self, data: bytes) -> None:
        self._expect_open()
        for side in self.sides:
            self.connection(side).send_bytes(data)

    def receive(
        self,
        api: str,
        version: int,
        *,
        deviation: str | Explain | None = None,
        rules: Mapping[str, Rule] | None = None,
        correlation_id: int | None = None,
        compare: bool = True,
        prepare: Callable[[Plain], Plain] = lambda reply: reply,
        learn: Callable[[Side, Plain], None] = lambda side, reply: None,
        patience_s: float | None = None,
    ) -> Pair:
        """The next reply of both brokers, compared.

        Args:
            deviation: the id of the row in docs/deviations.md that explains the difference here,
                or a function that gives it for the two replies (Kafka's first).
            rules: further fields that may differ in this comparison only.
            prepare: applied to both replies before they are compared.
            learn: is shown each side's own reply before that, as it came.
            patience_s: a broker that says nothing for this long counts as silent, if that is what
                the comparison expects; without it, no reply in time is an error.
        """
        expected = self._correlation_id if correlation_id is None else correlation_id
        plain = [self._receive(side, api, version, expected, patience_s) for side in self.sides]

        def compared() -> Pair:
            pair = Pair(plain[0], plain[1], self.sides)
            for side in self.sides:
                learn(side, pair[side])
            if compare:
                self._compare(api, version, pair, deviation, rules or {}, prepare)
            return pair

        try:
            return compared()
        except AssertionError:
            if SILENT not in plain:
                raise
        # On a busy machine it may only be late: silence is no difference before all time is up.
        for index, side in enumerate(self.sides):
            if plain[index] == SILENT:
                plain[index] = self._receive(side, api, version, expected, REPLY_TIMEOUT_S)
        return compared()

    def _compare(
        self,
        api: str,
        version: int,
        pair: Pair,
        deviation: str | Explain | None,
        rules: Mapping[str, Rule],
        prepare: Callable[[Plain], Plain],
    ) -> None:
        named = [
            side.with_names_for_ids(pair[side])
            if pair[side] in (CLOSED, SILENT)
            else prepare(side.with_names_for_ids(pair[side]))
            for side in self.sides
        ]
        if any(reply in (CLOSED, SILENT) for reply in named):
            found = [] if named[0] == named[1] else [Difference("connection", *named)]
        else:
            all_rules = {**RULES.get(api, {}), **rules}
            found = differences(*named, rules=all_rules, keyed=KEYED.get(api, {}))
        _note(f"{api} v{version} -> {named[0]}")
        if callable(deviation):
            deviation = deviation(named[0], named[1])
        self._judge(f"{api} v{version}", found, deviation)

    def ask(self, api: str, version: int, body: Body, **options: Any) -> Pair:
        """Send a request to both brokers and compare their replies; options as in `receive`."""
        self.send(api, version, body)
        return self.receive(api, version, **options)

    def first_reply_s(self) -> float:
        """Wait until one of the brokers answers; gives how long that took, in seconds."""
        began = time.monotonic()
        readable, _, _ = select.select(self._connections.values(), [], [], REPLY_TIMEOUT_S)
        assert readable, "neither broker has answered"
        return time.monotonic() - began

    def expect_closed(self, timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """Both brokers close the connection without a further byte."""
        for side in self.sides:
            frame = self.connection(side).receive_frame(timeout_s)
            assert frame is None, f"{side.name} sent {frame!r} instead of closing"
        self._is_closed = True

    def _expect_open(self) -> None:
        """After one close, two more would look the same without saying anything."""
        assert not self._is_closed, "a broker has closed this connection: use a fresh one"

    def _receive(
        self, side: Side, api: str, version: int, correlation_id: int, patience_s: float | None
    ) -> Plain:
        connection = self.connection(side)
        if patience_s is not None and connection.is_silent(patience_s):
            return SILENT
        frame = connection.receive_frame()
        if frame is None:
            self._is_closed = True
            return CLOSED
        reply, canonical = decode_response(api, version, frame, correlation_id=correlation_id)
        return reply if canonical else {**reply, "encoding": "not canonical"}

    def _judge(self, title: str, found: list[Difference], deviation: str | None) -> None:
        if deviation is None or self._same_broker:
            assert not found, f"{title} differs:{_listing(found)}"
            return
        row = deviations()[deviation]
        beyond = [one for one in found if one.pattern not in row.patterns]
        assert not beyond, f"{title} differs beyond {deviation}:{_listing(beyond)}"
        assert found, f"{title}: {deviation} no longer occurs; take it out of the document"


def _listing(found: list[Difference]) -> str:
    return "".join(f"\n  {difference}" for difference in found[:SHOWN_MAX])

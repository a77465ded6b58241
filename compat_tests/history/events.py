"""Events: what a client tried, how that ended, and what it saw.

One event is one line of JSON, in the order of time. Fields that have their default are left out.

| action       | type           | says                                                           |
|--------------|----------------|----------------------------------------------------------------|
| `send`       | invoke         | a producer sends a value, which nobody ever sends again;       |
|              |                | `transaction` and `transactional_id` when it is part of one    |
|              | ok             | it was acknowledged, at that offset (-1 where it was not told) |
|              | fail           | it was refused, and is in no log                               |
|              | unknown        | the producer gave up; the value may be there or not            |
| `poll`       | ok             | a consumer was handed a record                                 |
| `read`       | ok             | a record that is in the log when everything is over            |
| `end`        | ok             | the end of the log then; all of its `read`s came before        |
| `commit`     | invoke, ok ... | a group commits an offset; value: a name of this commit        |
| `committed`  | ok             | the offset that a group has committed (-1 for none)            |
| `assign`     | ok             | a member owns a partition, and reads it from that offset on    |
| `revoke`     | ok             | a member gives it up                                           |
| `watermarks` | ok             | what the leader of an epoch says of its log                    |
| `transaction`| invoke         | a producer wants to end it; name: `commit` or `abort`          |
|              | ok             | it has ended in that way                                       |
|              | fail           | it was refused: the transaction is not committed               |
|              | unknown        | the producer gave up; it may have ended in that way or not     |
| `topic`      | ok             | what is promised of a topic: `compacted`; it holds a copy of   |
|              |                | another (`copy_of`); all its keys have that `total`            |
| `state`      | ok             | name, value: a state, `live`, or `replayed` after a restart    |
| `check`      | ok, fail       | what the offline checker of the broker said after a recovery   |
| `fault`      | invoke, ok     | something is done to the broker; ok: it is over                |

A `poll` has the name of the consumer's assignment, which changes whenever partitions come or go.
Consumers and readers that see committed records only say so by `isolation`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

Type = Literal["invoke", "ok", "fail", "unknown"]
Action = Literal[
    "send",
    "poll",
    "read",
    "end",
    "commit",
    "committed",
    "assign",
    "revoke",
    "transaction",
    "watermarks",
    "topic",
    "state",
    "check",
    "fault",
]

TYPES = frozenset(get_args(Type))
ACTIONS = frozenset(get_args(Action))


class BadHistoryError(Exception):
    """A line that is no event; nothing can be said about such a history."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a process did or saw. Offsets and epochs are -1 where they are not known.

    Attributes:
        time: in seconds, on a clock that never jumps.
        idempotent: of a `send`: the producer promises that it is stored once, and in order.
        producer_id, producer_epoch, sequence: under which a `send` went, or a record is stored.
        generation: of a group's assignment; or the how manieth process with this transactional id
            has sent it.
        isolation: "committed", or "" for whoever sees everything.
        origin: of a `send` to a copy: the value that it is made of.
        amount: of a `send` to a topic with a total: what its key has from now on.
    """

    type: Type
    action: Action
    process: str = ""
    time: float = 0.0
    topic: str = ""
    partition: int = 0
    offset: int = -1
    value: str | None = None
    key: str | None = None
    leader_epoch: int = -1
    idempotent: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    assignment: str = ""
    group: str = ""
    generation: int = -1
    name: str = ""
    phase: str = ""
    transaction: str = ""
    transactional_id: str = ""
    isolation: str = ""
    origin: str = ""
    amount: int = -1
    copy_of: str = ""
    total: int = -1
    compacted: bool = False
    log_start: int = -1
    high_watermark: int = -1
    last_stable: int = -1
    log_end: int = -1

    def line(self) -> str:
        """Return the event as a line of JSON, without its end."""
        fields = {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }
        return json.dumps(fields)


_FIELDS = {field.name: field for field in dataclasses.fields(Event)}


def read_line(line: str) -> Event:
    """Return the event of a line.

    Raises:
        BadHistoryError: it is not JSON, or not an event.
    """
    try:
        fields: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise BadHistoryError(f"not JSON: {error}") from None
    if not isinstance(fields, dict) or not {"type", "action"} <= fields.keys():
        raise BadHistoryError("not an event with a type and an action")
    unknown = fields.keys() - _FIELDS.keys()
    if unknown:
        raise BadHistoryError(f"unknown fields {sorted(unknown)}")
    if fields["type"] not in TYPES or fields["action"] not in ACTIONS:
        raise BadHistoryError(f"unknown event {fields['type']} {fields['action']}")
    for name, value in fields.items():
        default = _FIELDS[name].default
        expected = (int, float) if name == "time" else type(default)
        is_text = name in ("type", "action", "value", "key")
        if not isinstance(value, str if is_text else expected):
            raise BadHistoryError(f"{name} is {value!r}")
    return Event(**fields)


def read_history(lines: Iterable[str]) -> list[Event]:
    """Return the events of a file's lines; empty ones are passed over.

    Raises:
        BadHistoryError: a line is not an event; the message has its number.
    """
    events = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                events.append(read_line(line))
            except BadHistoryError as error:
                raise BadHistoryError(f"line {number}: {error}") from None
    return events

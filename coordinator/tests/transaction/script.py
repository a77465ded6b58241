"""Scripts that talk to a transaction coordinator, and what it answers.

A script is a text: commands, a line `----`, and what they print, up to an empty line. Then come
the next commands. `#` begins a comment. What is printed: every answer, every record that is stored,
and the markers that shall be written.

Commands:

    level N                     of transaction.version; before everything else
    init ID [timeout= known]    `known`: the producer says who it was (KIP-360)
    add ID PARTITION ... [v=]
    verify ID PARTITION ...
    end ID commit|abort [v=]
    markers                     all that are due are written
    advance N                   milliseconds
    sweep                       what took too long, what was not used for long
    refuse N                    the log refuses the next N appends
    reload                      the shard
    epochs ID N                 the producer has got so many epochs before

A producer sends the id and epoch that it was told last; `pid=` and `epoch=` add to them. The first
`who=NAME` remembers who it is then, and later ones send that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.tests.transaction.world import EPOCH_MS, World
from klamm.coordinator.transaction.coordinator import ProducerIdentity
from klamm.coordinator.transaction.transaction import TopicPartition, to_value
from klamm.wire.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue

NOBODY = ProducerIdentity(-1, -1)


class Script:
    """The state of one script."""

    def __init__(self) -> None:
        self.world = World()
        self._known: dict[str, ProducerIdentity] = {}
        self._names: dict[str, ProducerIdentity] = {}
        self._commands: dict[str, Callable[..., Iterator[str]]] = {
            name: getattr(self, f"_{name}")
            for name in (
                *("level", "init", "add", "verify", "end", "markers", "advance", "sweep"),
                *("refuse", "reload", "epochs"),
            )
        }

    def run(self, command: str) -> list[str]:
        name, *words = command.split()
        options = dict(word.split("=") for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        before = len(self.world.journal.batches)
        tasks = len(self.world.markers.tasks)
        try:
            answers = list(self._commands[name](*plain, **options))
        except CoordinatorError as error:
            answers = [f"{' '.join([name, *plain[:1]])}: {error.code.name}"]
        stored = [shown(record) for record in self.world.records_since(before)]
        due = [
            f"markers {'commit' if task.outcome.is_commit else 'abort'}"
            f" {task.outcome.producer_id}/{task.outcome.producer_epoch}"
            f" v{task.outcome.transaction_version} {names(task.outcome.partitions)}"
            for task in self.world.markers.tasks[tasks:]
        ]
        return [*stored, *due, *answers]

    # --- commands ---

    def _level(self, level: str) -> Iterator[str]:
        self.world.version = int(level)
        return iter(())

    def _init(
        self, name: str, known: str = "", timeout: str = "60000", **who: str
    ) -> Iterator[str]:
        expected = self._who(name, **who) if known else None
        given = self.world.coordinator.init_producer_id(name, int(timeout), expected)
        yield from self._told("init", name, given)

    def _add(self, name: str, *partitions: str, v: str = "2", **who: str) -> Iterator[str]:
        self.world.coordinator.add_partitions(
            name, self._who(name, **who), map(parsed, partitions), int(v)
        )
        yield f"add {name}: NONE"

    def _verify(self, name: str, *partitions: str, **who: str) -> Iterator[str]:
        missing = self.world.coordinator.missing_partitions(
            name, self._who(name, **who), map(parsed, partitions)
        )
        yield f"verify {name}: NONE" + (f" without {names(missing)}" if missing else "")

    def _end(self, name: str, outcome: str, v: str = "2", **who: str) -> Iterator[str]:
        given = self.world.coordinator.end(
            name, self._who(name, **who), commit=outcome == "commit", client_version=int(v)
        )
        yield from self._told("end", name, given)

    def _markers(self) -> Iterator[str]:
        tasks, self.world.markers.tasks = self.world.markers.tasks, []
        for task in tasks:
            task.done()
        return iter(())

    def _advance(self, milliseconds: str) -> Iterator[str]:
        self.world.now_ms += int(milliseconds)
        return iter(())

    def _sweep(self) -> Iterator[str]:
        self.world.abort_timed_out()
        self.world.remove_expired()
        return iter(())

    def _refuse(self, appends: str) -> Iterator[str]:
        self.world.journal.refuse(appends=int(appends))
        return iter(())

    def _reload(self) -> Iterator[str]:
        self.world.load()
        return iter(
            f"markers again for {task.outcome.producer_id}/{task.outcome.producer_epoch}"
            for task in self.world.markers.tasks
        )

    def _epochs(self, name: str, epoch: str) -> Iterator[str]:
        transaction = self.world.coordinator.get(name)
        assert transaction is not None
        moved = replace(transaction, producer_epoch=int(epoch))
        key = TransactionLogKey(transactional_id=name)
        self.world.journal.append([CoordinatorRecord(key, to_value(moved), 1)])
        self._known[name] = ProducerIdentity(moved.producer_id, moved.producer_epoch)
        return iter(())

    # --- who ---

    def _told(self, command: str, name: str, given: ProducerIdentity) -> Iterator[str]:
        self._known[name] = given
        yield f"{command} {name}: NONE {given.producer_id}/{given.producer_epoch}"

    def _who(
        self, name: str, *, pid: str = "0", epoch: str = "0", who: str = ""
    ) -> ProducerIdentity:
        known = self._names[who] if who in self._names else self._known.get(name, NOBODY)
        if who and who not in self._names:
            self._names[who] = known
        return ProducerIdentity(known.producer_id + int(pid), known.producer_epoch + int(epoch))


def parsed(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def names(partitions: frozenset[TopicPartition]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "nowhere"


def shown(record: CoordinatorRecord) -> str:
    key, value = record.key, record.value
    assert isinstance(key, TransactionLogKey)
    if value is None:
        return f"stored {key.transactional_id} tombstone"
    assert isinstance(value, TransactionLogValue)
    said = [
        f"stored {key.transactional_id} v{record.value_version}",
        f"status={value.transaction_status}",
        f"{value.producer_id}/{value.producer_epoch}",
        f"at={value.transaction_last_update_timestamp_ms - EPOCH_MS}",
    ]
    if value.transaction_start_timestamp_ms >= 0:
        said.append(f"start={value.transaction_start_timestamp_ms - EPOCH_MS}")
    if value.previous_producer_id not in (-1, value.producer_id):
        said.append(f"previous={value.previous_producer_id}")
    if value.next_producer_id >= 0:
        said.append(f"next={value.next_producer_id}")
    if value.client_transaction_version:
        said.append(f"client=v{value.client_transaction_version}")
    if value.transaction_partitions is None:
        said.append("partitions=null")
    elif value.transaction_partitions:
        held = {
            (topic.topic, index)
            for topic in value.transaction_partitions
            for index in topic.partition_ids
        }
        said.append(names(frozenset(held)))
    return " ".join(said)

"""One transaction of a workload, told as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from compat_tests.history.events import Event, Type
from compat_tests.transactions.libraries import TransactionalProducer
from compat_tests.transactions.telling import tell


@dataclass
class Identity:
    """Which process writes: the how manieth with its transactional id."""

    transactional_id: str
    generation: int
    numbers: count[int] = field(default_factory=count)

    @property
    def process(self) -> str:
        return f"{self.transactional_id}/{self.generation}"


class Scope:
    """Sends, and then one end. Whatever raises an error in between leaves the outcome unknown."""

    def __init__(self, producer: TransactionalProducer, identity: Identity) -> None:
        self._producer = producer
        self._identity = identity
        self._name = f"{identity.process}/{next(identity.numbers)}"
        self._sent: list[Event] = []
        producer.begin()

    def send(self, event: Event, content: str) -> None:
        """
        Args:
            event: where to, and what the rules have to know of it.
            content: what the value says; it is made one that nobody else sends.
        """
        identity = self._identity
        sent = replace(
            event,
            type="invoke",
            action="send",
            process=identity.process,
            value=f"{self._name}/{len(self._sent)}/{content}",
            transaction=self._name,
            transactional_id=identity.transactional_id,
            generation=identity.generation,
            idempotent=True,
        )
        tell(sent)
        self._sent.append(sent)
        assert sent.value is not None
        self._producer.send(sent.topic, sent.value, sent.partition)

    def commit(self) -> None:
        self._tell_end("invoke", "commit")
        self._producer.commit()
        self._tell_sends("ok")
        self._tell_end("ok", "commit")

    def abort(self) -> None:
        self._tell_end("invoke", "abort")
        self._producer.abort()
        self._tell_sends("unknown")
        self._tell_end("ok", "abort")

    def _tell_end(self, outcome: Type, how: str) -> None:
        process = self._identity.process
        tell(Event(outcome, "transaction", process, transaction=self._name, name=how))

    def _tell_sends(self, outcome: Type) -> None:
        for sent in self._sent:
            tell(
                Event(
                    outcome,
                    "send",
                    sent.process,
                    topic=sent.topic,
                    partition=sent.partition,
                    value=sent.value,
                )
            )


def content(value: str) -> str:
    """What was given to `send`."""
    return value.split("/", 4)[-1]

"""A transactional producer on both brokers: the same requests, each with its broker's own ids."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from compat_tests.twin.batches import BASE_TIMESTAMP_MS, CONTROL, TRANSACTIONAL, R, batch
from compat_tests.twin.codec import Plain
from compat_tests.twin.comparison import differences
from compat_tests.twin.conversation import Conversation, Pair, Side
from compat_tests.twin.logs import batches_in
from compat_tests.twin.may_differ import about_the_same_time
from compat_tests.twin.requests import Body, fetch, fetch_partition, list_offsets, produce
from compat_tests.twin.topics import READY_TIMEOUT_S, Twin

INIT, ADD, OFFSETS, END = 5, 3, 4, 5
# The first version of Produce that adds partitions by itself, and the last that does not.
ADDING, VERIFYING = 12, 11
READ_COMMITTED = 1
LATEST, EARLIEST, OF_LARGEST_TIME = -1, -2, -3
# Of the last three the first finds records, the second the first marker, the third nothing. Which
# marker has the largest time is chance, where several are written at once.
_TIMES = (LATEST, EARLIEST, BASE_TIMESTAMP_MS, BASE_TIMESTAMP_MS + 1, 1 << 50)


class Producer:
    """One transactional id, as its producer knows itself on each side.

    `epoch=` and `producer=` are added to what it knows: what a zombie sends, or a stranger.
    """

    def __init__(self, twin: Twin, transactional_id: str | None = None) -> None:
        self.twin = twin
        self.id = transactional_id or twin.unused_name("transaction")
        self.ids: dict[str, int] = {}
        self.epochs: dict[str, int] = {}
        self._sequences: dict[tuple[str, int], int] = {}

    def copy(self) -> Producer:
        """The same producer as it is now; what it learns later the copy does not know."""
        other = Producer(self.twin, self.id)
        other.ids, other.epochs = dict(self.ids), dict(self.epochs)
        other._sequences = dict(self._sequences)
        return other

    def identity(self, side: Side, *, epoch: int = 0, producer: int = 0) -> Plain:
        return {
            "producer_id": self.ids[side.name] + producer,
            "producer_epoch": self.epochs[side.name] + epoch,
        }

    # --- requests ---

    def init(
        self,
        talk: Conversation,
        version: int = INIT,
        *,
        timeout: int = 60_000,
        goes_on: bool = False,
        wait: bool = True,
    ) -> Pair:
        """Ask for an identity until there is one.

        Args:
            goes_on: say who it was before (KIP-360).
            wait: ask again while a transaction is being ended.
        """

        def body(side: Side) -> Plain:
            named = {"transactional_id": self.id, "transaction_timeout": timeout}
            before = {"producer_id": -1, "producer_epoch": -1}
            return {**named, **(self.identity(side) if goes_on else before)}

        if wait:
            self.settle(talk)
        return talk.ask("init_producer_id", version, body, learn=self._learn)

    def _learn(self, side: Side, reply: Plain) -> None:
        if reply.get("error_code") == "none" and reply.get("producer_id", -1) >= 0:
            self.ids[side.name] = reply["producer_id"]
            if self.epochs.get(side.name) != reply["producer_epoch"]:
                self._sequences.clear()
            self.epochs[side.name] = reply["producer_epoch"]
            side.producers[reply["producer_id"]] = f"<producer of {self.id}>"

    def add(
        self,
        talk: Conversation,
        topics: Mapping[str, Sequence[int]],
        version: int = ADD,
        **who: Any,
    ) -> Pair:
        return talk.ask("add_partitions_to_txn", version, self.adding(topics, **who))

    def adding(
        self, topics: Mapping[str, Sequence[int]], *, verify_only: bool = False, **who: Any
    ) -> Body:
        """In the form of every version."""
        named = [{"name": name, "partitions": list(held)} for name, held in topics.items()]

        def body(side: Side) -> Plain:
            identity = self.identity(side, **who)
            one = {"transactional_id": self.id, **identity, "topics": named}
            old = {
                "v3_and_below_transactional_id": self.id,
                "v3_and_below_producer_id": identity["producer_id"],
                "v3_and_below_producer_epoch": identity["producer_epoch"],
                "v3_and_below_topics": named,
            }
            return {**old, "transactions": [{**one, "verify_only": verify_only}]}

        return body

    def add_offsets(
        self, talk: Conversation, group: str, version: int = OFFSETS, **who: int
    ) -> Pair:
        return talk.ask(
            *("add_offsets_to_txn", version),
            lambda side: {
                "transactional_id": self.id,
                "group_id": group,
                **self.identity(side, **who),
            },
        )

    def write(
        self,
        talk: Conversation,
        topic: str,
        *values: bytes,
        version: int = ADDING,
        partition: int = 0,
        advance: bool = True,
        at: int = BASE_TIMESTAMP_MS,
        **who: int,
    ) -> Pair:
        """Produce one transactional batch; its sequence follows the last one.

        Args:
            at: the time of the records.
        """
        place = (topic, partition)
        sequence = self._sequences.get(place, 0)
        held = [R(value) for value in values or (b"value",)]

        def body(side: Side) -> Plain:
            identity = self.identity(side, **who)
            records = batch(
                *held,
                base_sequence=sequence,
                base_timestamp=at,
                attributes=TRANSACTIONAL,
                **identity,
            )
            return produce(topic, {partition: records}, transactional_id=self.id)(side)

        pair = talk.ask("produce", version, body)
        if advance and written(pair):
            self._sequences[place] = sequence + len(held)
        return pair

    def end(
        self, talk: Conversation, *, commit: bool = True, version: int = END, **who: int
    ) -> Pair:
        """EndTxn, without waiting for the markers."""
        return talk.ask(
            *("end_txn", version),
            lambda side: {
                "transactional_id": self.id,
                "committed": commit,
                **self.identity(side, **who),
            },
            learn=self._learn,
        )

    def describe(self, talk: Conversation) -> None:
        """Compare what is listed and what is described. An empty transaction has begun at -1, which
        kio takes for no time; test_describe_transactions.py looks at the bytes instead."""
        pair = talk.ask("list_transactions", 2, self._listing())
        if any(state != "Empty" for state in _states(pair)):
            talk.ask("describe_transactions", 0, {"transactional_ids": [self.id]})

    def settle(self, talk: Conversation) -> None:
        """Wait until neither broker is ending a transaction of this id."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            pair = talk.ask("list_transactions", 2, self._listing(), compare=False)
            if not any(state.startswith("Prepare") for state in _states(pair)):
                return
            assert time.monotonic() < deadline, f"not in time: {pair}"
            time.sleep(0.005)

    def _listing(self) -> Plain:
        return {"transactional_id_pattern": self.id}


def _states(pair: Pair) -> list[str]:
    return [
        one["transaction_state"] for side in pair.sides for one in pair[side]["transaction_states"]
    ]


def written(pair: Pair) -> bool:
    (partition,) = pair.kafka["responses"][0]["partition_responses"]
    return bool(partition["error_code"] == "none")


def compare_committed(talk: Conversation, topic: str, partition: int = 0) -> None:
    """Read a partition as one who wants committed data only, and compare all that is said: bytes,
    aborted transactions, how far it may be read, what is found by time. Then all of it, with the
    open part."""
    for isolation in (READ_COMMITTED, 0):
        body = fetch({topic: [fetch_partition(partition)]}, isolation_level=isolation)
        pair = talk.ask("fetch", 16, body, compare=False)
        shown = [_readable(side, pair[side]) for side in talk.sides]
        found = differences(*shown, rules=_LOG_RULES, keyed={})
        assert not found, "\n".join(map(str, found))
        compare_offsets(talk, topic, partition, isolation=isolation)


def compare_offsets(
    talk: Conversation,
    topic: str,
    partition: int = 0,
    *,
    times: Sequence[int] = _TIMES,
    isolation: int = READ_COMMITTED,
    version: int = 7,
) -> None:
    """What ListOffsets finds: the ends, and records and markers by their time."""
    for time_ms in times:
        body = list_offsets(topic, time_ms, partition=partition, isolation_level=isolation)
        talk.ask("list_offsets", version, body, rules=_OFFSET_RULES)


# No test gives its records a time that is later than this, unless it is ahead of the clock.
_RECORDS_UNTIL_MS = BASE_TIMESTAMP_MS + 1_000_000


def _same_time(kafka: int, other: int) -> bool:
    """A record has the time that the test gave it; only markers have that of a clock."""
    if min(kafka, other) < _RECORDS_UNTIL_MS:
        return kafka == other
    return about_the_same_time(kafka, other)


# The clock is in every marker.
_LOG_RULES = {
    "batches[].base_timestamp": about_the_same_time,
    "batches[].max_timestamp": about_the_same_time,
}
_OFFSET_RULES = {"topics[].partitions[].timestamp": _same_time}


def _readable(side: Side, reply: Plain) -> Plain:
    (topic,) = reply["responses"]
    (held,) = topic["partitions"]
    batches = batches_in(held.pop("records"))
    for one in batches or ():
        # Both are made of the producer id, among others.
        one.pop("crc", None)
        if one.get("producer_id", -1) >= 0:
            one["producer_id"] = side.producers[one["producer_id"]]
        if one.get("attributes", 0) & CONTROL:
            assert one["checksum_is_right"]
    for aborted in held.get("aborted_transactions") or ():
        aborted["producer_id"] = side.producers[aborted["producer_id"]]
    return {**held, "batches": batches}

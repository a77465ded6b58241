"""What real clients leave in a data directory, and find again whichever broker serves it next.

Each visit to a broker checks all that the visits before have left, then goes on with it: the same
idempotent producer, the same groups, the same topics.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.twin.batches import R, batch

PATIENCE_S = 60.0
RECORDS = 50
KEYS = 5
GROUPS = {"old": "classic", "new": "consumer"}
PLAIN = {"retention.ms": "123456789", "segment.bytes": str(1024 * 1024)}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"}


class Traveller:
    """One user of the directory, who stays while the brokers change.

    Args:
        bootstrap: where all of the brokers listen, one after the other.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.visits = 0
        self._sent: list[bytes] = []
        self._latest: dict[bytes, bytes] = {}
        self._committed: list[bytes] = []
        self._topic_ids: dict[str, str] = {}
        self._configs: dict[str, dict[str, str]] = {}
        self._producer_ids: list[int] = []
        self._sequence = 0
        self._last_batch = b""
        # It lives as long as the test, and never begins anew.
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(PATIENCE_S * 1000),
                "log_level": 0,
            }
        )

    def visit(self) -> None:
        """Check what is there, and go on."""
        self.visits += 1
        self._admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        if self.visits == 1:
            self._make("plain", PLAIN)
            self._make("compacted", COMPACTED)
            self._make("sequenced", {})
            self._make("transactional", {})
        else:
            for topic in self._topic_ids:
                raw.wait_until_led(self._bootstrap, topic, 1)
            self._check_topics()
            self._check_groups()
            self._check_producer_state()
        self._make(f"made-{self.visits}", {"max.message.bytes": str(10_000 + self.visits)})
        self._make_and_delete("gone")
        self._produce()
        self._transact()
        self._check_records()
        for group in GROUPS:
            self._consume(group)
        self._take_producer_id()
        self._go_on_with_a_sequence()

    # --- topics ---

    def _make(self, topic: str, config: Mapping[str, str]) -> None:
        create_topic(self._bootstrap, topic, config=config)
        raw.wait_until_led(self._bootstrap, topic, 1)
        self._topic_ids[topic] = self._topic_id(topic)
        self._configs[topic] = dict(config)

    def _make_and_delete(self, topic: str) -> None:
        create_topic(self._bootstrap, topic)
        raw.wait_until_led(self._bootstrap, topic, 1)
        self._admin.delete_topics([topic])[topic].result(PATIENCE_S)

    def _topic_id(self, topic: str) -> str:
        described = self._admin.describe_topics(TopicCollection([topic]))[topic]
        return str(described.result(PATIENCE_S).topic_id)

    def expect_configs(self, topic: str, **configs: str) -> None:
        """Settings that were changed beside us, and have to stay."""
        self._configs[topic] |= {name.replace("_", "."): value for name, value in configs.items()}

    def _check_topics(self) -> None:
        assert {name: self._topic_id(name) for name in self._topic_ids} == self._topic_ids
        for topic, config in self._configs.items():
            shown = self.topic_configs(topic)
            assert {name: shown[name] for name in config} == config
        gone = raw.call(self._bootstrap, raw.API_METADATA, 4, b"\0\0\0\1\0\4gone\0")
        assert b"\0\3\0\4gone" in gone, "deleted topics are unknown"

    def topic_configs(self, topic: str) -> dict[str, str]:
        """All settings, as DescribeConfigs shows them."""
        resource = ConfigResource("topic", topic)
        described = self._admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return {name: entry.value for name, entry in described.items()}

    # --- records ---

    def _produce(self) -> None:
        failures: list[object] = []
        for number in range(RECORDS):
            value = b"%d of visit %d" % (number, self.visits)
            key = b"%d" % (number % KEYS)
            self._sent.append(value)
            self._latest[key] = value
            for topic in ("plain", "compacted"):
                self._producer.produce(
                    topic,
                    value,
                    key,
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )
        assert self._producer.flush(PATIENCE_S) == 0
        assert failures == []

    def _check_records(self) -> None:
        """Every record once and in its order; of a compacted topic the last of each key."""
        assert [value for _, value in self._read("plain")] == self._sent
        assert dict(self._read("compacted")) == self._latest
        assert [value for _, value in self._read("transactional")] == self._committed

    def _transact(self) -> None:
        """Commit one transaction, abort one, and leave one open, which the next visit ends."""
        self._transactional = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": "traveller",
                "log_level": 0,
            }
        )
        producer = self._transactional
        producer.init_transactions(PATIENCE_S)
        for what in (b"committed", b"aborted", b"open"):
            value = b"%s in visit %d" % (what, self.visits)
            producer.begin_transaction()
            producer.produce("transactional", value)
            # An abort drops what was not sent yet.
            assert producer.flush(PATIENCE_S) == 0
            if what == b"committed":
                producer.commit_transaction(PATIENCE_S)
                self._committed.append(value)
            elif what == b"aborted":
                producer.abort_transaction(PATIENCE_S)

    def _read(self, topic: str) -> list[tuple[bytes, bytes]]:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "nobody", "log_level": 0}
        )
        try:
            partition = TopicPartition(topic, 0, 0)
            end = consumer.get_watermark_offsets(partition, timeout=PATIENCE_S)[1]
            consumer.assign([partition])
            found: list[tuple[bytes, bytes]] = []

            def read_on() -> bool:
                for message in consumer.consume(500, timeout=0.5):
                    assert message.error() is None, message.error()
                    found.append((message.key() or b"", message.value() or b""))
                # It passes over markers and aborted records, too.
                return consumer.position([partition])[0].offset >= end

            wait_for(read_on, f"{topic} can't be read to its end")
            return found
        finally:
            consumer.close()

    # --- groups ---

    def _consume(self, group: str) -> None:
        """Read what came since the last commit and commit it: nothing twice, nothing left out."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "group.protocol": GROUPS[group],
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe(["plain"])
        found: list[bytes] = []

        def read_on() -> bool:
            for message in consumer.consume(RECORDS, timeout=0.5):
                assert message.error() is None, message.error()
                found.append(message.value() or b"")
            return len(found) >= RECORDS

        try:
            wait_for(read_on, f"group {group} does not get its records")
            assert found == self._sent[-RECORDS:]
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()

    def _check_groups(self) -> None:
        for group in GROUPS:
            wait_for(lambda: self._is_there(group), f"group {group} is not there")  # noqa: B023

    def _is_there(self, group: str) -> bool:
        listed = self._admin.list_consumer_groups().result(PATIENCE_S)
        if group not in {one.group_id for one in listed.valid}:
            return False
        asked = [ConsumerGroupTopicPartitions(group)]
        try:
            stored = self._admin.list_consumer_group_offsets(asked)[group].result(PATIENCE_S)
        except KafkaException:
            # Apache Kafka is still loading it.
            return False
        assert stored.topic_partitions is not None
        assert [one.offset for one in stored.topic_partitions] == [len(self._sent)]
        return True

    # --- producers ---

    def _take_producer_id(self) -> None:
        producer_id, _ = raw.init_producer_id(self._bootstrap)
        self._producer_ids.append(producer_id)
        assert max(Counter(self._producer_ids).values()) == 1, "no id is given twice"

    def _go_on_with_a_sequence(self) -> None:
        """A producer whose every batch we write ourselves, to see that its state is known."""
        self._last_batch = batch(
            *(R(b"%d" % number) for number in range(3)),
            producer_id=self._producer_ids[0],
            producer_epoch=0,
            base_sequence=self._sequence,
            base_timestamp=time.time_ns() // 1_000_000,
        )
        assert raw.produce(self._bootstrap, "sequenced", self._last_batch) == (0, self._sequence)
        self._sequence += 3

    def _check_producer_state(self) -> None:
        """The last batch is known, and what does not follow on it is refused."""
        again = raw.produce(self._bootstrap, "sequenced", self._last_batch)
        assert again == (0, self._sequence - 3)
        too_far = batch(
            R(b"gap"),
            producer_id=self._producer_ids[0],
            producer_epoch=0,
            base_sequence=self._sequence + 7,
            base_timestamp=time.time_ns() // 1_000_000,
        )
        out_of_order = 45
        assert raw.produce(self._bootstrap, "sequenced", too_far)[0] == out_of_order


def wait_for(is_done: Callable[[], bool], otherwise: str) -> None:
    """Poll with a bound; `is_done` waits a little itself, or is cheap."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)

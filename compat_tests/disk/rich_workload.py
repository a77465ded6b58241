"""Work that leaves traces in every kind of file: transactions, compaction, deletion, groups."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.clients.fixtures import create_topic

PATIENCE_S = 40.0
DELETED_TO = 100

# The cleaner comes at once and again, and group and transaction topics are small.
PROPERTIES = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "300",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
    "index.interval.bytes": "100",
}
_SMALL = {"segment.bytes": str(1024 * 1024), "index.interval.bytes": "1000"}


def work(bootstrap: str, data_dir: Path) -> None:
    """Do all of it; a transaction stays open."""
    create_topic(bootstrap, "transactions", config=_SMALL)
    create_topic(bootstrap, "compacted", config=_COMPACTED)
    create_topic(bootstrap, "shortened", config=_SMALL)
    create_topic(bootstrap, "gone")
    create_topic(bootstrap, "empty")
    # Kept until the end: what it has open stays open.
    open_transaction = _begin(bootstrap, "open")
    open_transaction.produce("transactions", b"open")
    open_transaction.flush()
    for number in range(2):
        producer = _begin(bootstrap, f"transaction {number}")
        for turn in range(4):
            if turn:
                producer.begin_transaction()
            for record in range(200):
                value = f"{number} {turn} {record} ".encode() * 50
                producer.produce("transactions", value, key=str(record))
                producer.produce("compacted", value, key=str(record % 10))
            # An abort drops what was not sent yet.
            producer.flush()
            if turn % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        plain = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True}
        )
        for record in range(200):
            value = f"{codec} {record} ".encode() * 50
            plain.produce("shortened", value)
            plain.produce("compacted", value, key=str(record % 10))
        plain.flush()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records([TopicPartition("shortened", 0, DELETED_TO)]).values():
        deleted.result()
    for protocol in ("classic", "consumer"):
        _consume(bootstrap, protocol)
    for removed in admin.delete_topics(["gone"]).values():
        removed.result()
    _wait_until_compacted(bootstrap, data_dir)


def _begin(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    return producer


def _consume(bootstrap: str, protocol: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"group of {protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["shortened"])
    gives_up_at = time.monotonic() + PATIENCE_S
    while not consumer.consume(10, timeout=0.5):
        assert time.monotonic() < gives_up_at, "the consumer gets nothing"
    consumer.commit(asynchronous=False)
    consumer.close()


def _wait_until_compacted(bootstrap: str, data_dir: Path) -> None:
    """Write now and then, so that segments roll, until the cleaner has been there."""
    checkpoint = data_dir / "cleaner-offset-checkpoint"
    writer = Producer({"bootstrap.servers": bootstrap})
    gives_up_at = time.monotonic() + PATIENCE_S
    while not (checkpoint.exists() and "compacted 0" in checkpoint.read_text()):
        assert time.monotonic() < gives_up_at, "nothing is compacted"
        writer.produce("compacted", b"last", key=b"last")
        writer.flush()
        time.sleep(0.4)

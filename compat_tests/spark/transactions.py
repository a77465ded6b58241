"""Transactions by a client that is not Spark's: what the source must hide, or wait for."""

from __future__ import annotations

from confluent_kafka import Producer

COMMITTED = {"kafka__isolation__level": "read_committed"}


def write(producer: Producer, topic: str, *values: str) -> None:
    """Begin a transaction and write into it; it stays open."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(60)

"""What the tests of transactions do and look at again and again."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from compat_tests.clients.fixtures import Broker
from compat_tests.clients.model import READ_COMMITTED, Client
from compat_tests.process.watched import run_klamm
from compat_tests.transactions.libraries import TransactionalProducer


def values(
    client: Client, bootstrap: str, topic: str, count: int, isolation: str = READ_COMMITTED
) -> list[str]:
    """The first values that a consumer gets of partition 0."""
    read = client.consume(bootstrap, topic, count, isolation=isolation)
    return [(one.value or b"").decode() for one in read]


def write(producer: TransactionalProducer, topic: str, *sent: str) -> None:
    producer.begin()
    for value in sent:
        producer.send(topic, value)


def committed_end(broker: Broker, topic: str) -> int:
    """Where a consumer that sees committed records only finds the end."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, isolation_level=READ_COMMITTED, metrics_enabled=False
    )
    try:
        where = TopicPartition(topic, 0)
        end: int = consumer.end_offsets([where])[where]
        return end
    finally:
        consumer.close()


def stop_and_check(broker: Broker) -> None:
    """Stop a broker; there is nothing to complain about in what it leaves."""
    broker.stop()
    done = run_klamm("check", str(broker.data_dir))
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.startswith("0 faults, 0 notes "), done.stdout[-3000:]

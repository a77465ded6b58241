"""The source over transactions: what read_committed hides, and that it still moves on."""

from __future__ import annotations

from confluent_kafka import Producer

from compat_tests.clients.fixtures import MakeTopic
from compat_tests.spark.connector import EVERY_100_MS, Batches, Connector, wait_until
from compat_tests.spark.transactions import COMMITTED, write


def seen(kafka: Connector, topic: str, **options: object) -> list[str | None]:
    return [value for _, _, value in kafka.values(subscribe=topic, **options)]


def test_batch_reads_see_what_is_committed(
    kafka: Connector, make_topic: MakeTopic, transactional: Producer
) -> None:
    """Aborted records never; records of an open transaction, and all behind them, not yet."""
    topic = make_topic()
    write(transactional, topic, "a", "b")
    transactional.commit_transaction(60)
    write(transactional, topic, "never")
    transactional.abort_transaction(60)
    write(transactional, topic, "open")
    kafka.produce(topic, ["plain"])
    assert seen(kafka, topic, **COMMITTED) == ["a", "b"]
    assert seen(kafka, topic) == ["a", "b", "never", "open", "plain"]
    transactional.commit_transaction(60)
    assert seen(kafka, topic, **COMMITTED) == ["a", "b", "open", "plain"]


def test_a_log_that_ends_in_an_abort_marker_is_read_to_its_end(
    kafka: Connector, make_topic: MakeTopic, transactional: Producer
) -> None:
    """AvailableNow ends although its last offsets hold nothing visible; the next run goes on."""
    topic = make_topic()
    options = {"subscribe": topic, "startingOffsets": "earliest", **COMMITTED}
    write(transactional, topic, "a")
    transactional.commit_transaction(60)
    write(transactional, topic, *"xyz")
    transactional.abort_transaction(60)
    assert kafka.available_now(**options) == [[(0, 0, "a")]]
    write(transactional, topic, "b")
    transactional.abort_transaction(60)
    assert kafka.available_now(**options) == []
    kafka.produce(topic, ["c"])
    assert [value for batch in kafka.available_now(**options) for *_, value in batch] == ["c"]


def test_a_stream_waits_for_the_end_of_a_transaction(
    kafka: Connector, make_topic: MakeTopic, transactional: Producer
) -> None:
    topic = make_topic()
    write(transactional, topic, "in doubt")
    kafka.produce(topic, ["behind"])
    batches = Batches()
    query = kafka.collect(
        batches,
        trigger=EVERY_100_MS,
        subscribe=topic,
        startingOffsets="earliest",
        **COMMITTED,
    )
    wait_until(lambda: query.lastProgress is not None, "a trigger", query)
    assert batches.all() == []
    transactional.commit_transaction(60)
    wait_until(lambda: len(batches.all()) == 2, "both records", query)
    assert [value for *_, value in batches.all()] == ["in doubt", "behind"]

"""confluent-kafka (librdkafka) as a process: produce, in transactions too, consume without a group,
and latency.

    python -m benchmarks.confluent_client produce --bootstrap B --topic T --records N …

Each prints one JSON object. The clock runs from the first record handed over to the last one
acknowledged or received; start-up of the process and of the connection stays outside.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from benchmarks.loads import LoadError

FLUSH_TIMEOUT_S = 60
SILENCE_S_MAX = 10
BATCH_RECORDS = 1_000
CONSUME_RECORDS = 10_000
LATENCY_RECORD_BYTES = 100

_SENT_AT = struct.Struct(">q")


def _producer(args: argparse.Namespace, **more: Any) -> tuple[Any, list[KafkaError]]:
    """A producer that is connected and knows the topic, and the list of its failures."""
    problems: list[KafkaError] = []

    def report(problem: KafkaError | None, _message: object) -> None:
        if problem is not None:
            problems.append(problem)

    producer = Producer(
        {
            "bootstrap.servers": args.bootstrap,
            "acks": args.acks,
            "delivery.report.only.error": True,
            "on_delivery": report,
            **more,
        }
    )
    producer.list_topics(args.topic, 10)
    return producer, problems


def produce(args: argparse.Namespace) -> dict[str, float]:
    """Seconds to hand over and flush `records` records."""
    producer, problems = _producer(args, **dict(each.split("=", 1) for each in args.set))
    values = args.payload.read_bytes().splitlines()
    messages = [{"value": values[index % len(values)]} for index in range(BATCH_RECORDS)]
    started = time.perf_counter()
    left = args.records
    while left > 0:
        # Never more than half of librdkafka's queue of 100,000 messages, so it is never full.
        if len(producer) > 50_000:
            producer.poll(0.001)
            continue
        part = messages if left >= BATCH_RECORDS else messages[:left]
        left -= producer.produce_batch(args.topic, part)
        producer.poll(0)
    undelivered = producer.flush(FLUSH_TIMEOUT_S)
    seconds = time.perf_counter() - started
    if undelivered or problems:
        raise LoadError(f"{undelivered} records not delivered, {len(problems)} failed")
    return {"records": args.records, "seconds": seconds}


def transactions(args: argparse.Namespace) -> dict[str, float]:
    """Seconds for that many transactions of `records` records each, one after the other.

    librdkafka waits for a full batch or for its linger time, so that is 0 here.
    """
    producer, problems = _producer(
        args, **{"transactional.id": f"benchmark-{args.topic}", "linger.ms": 0}
    )
    messages = [{"value": b"x" * args.size}] * args.records
    producer.init_transactions(FLUSH_TIMEOUT_S)
    started = time.perf_counter()
    for _ in range(args.transactions):
        producer.begin_transaction()
        producer.produce_batch(args.topic, messages)
        producer.commit_transaction(FLUSH_TIMEOUT_S)
    seconds = time.perf_counter() - started
    if problems:
        raise LoadError(f"{len(problems)} records failed")
    return {"transactions": args.transactions, "seconds": seconds}


def _consumer(args: argparse.Namespace) -> Any:
    consumer = Consumer(
        {
            "bootstrap.servers": args.bootstrap,
            # The binding wants a group id; assign() without commits never uses it.
            "group.id": "klamm-benchmarks",
            "enable.auto.commit": False,
            # By default a consumer whose queue is full asks for no more for a second, and whether a
            # broker is fast enough for that would decide the row.
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.list_topics(args.topic, 10)
    return consumer


def consume(args: argparse.Namespace) -> dict[str, float]:
    """Seconds to read `records` records from the start of all partitions."""
    consumer = _consumer(args)
    started = time.perf_counter()
    consumer.assign([TopicPartition(args.topic, index, 0) for index in range(args.partitions)])
    seen = 0
    while seen < args.records:
        messages = consumer.consume(CONSUME_RECORDS, SILENCE_S_MAX)
        if not messages:
            raise LoadError(f"silence after {seen} records")
        for message in (messages[0], messages[-1]):
            if message.error() is not None:
                raise LoadError(str(message.error()))
        seen += len(messages)
    seconds = time.perf_counter() - started
    consumer.close()
    return {"records": seen, "seconds": seconds}


def latency(args: argparse.Namespace) -> dict[str, float]:
    """Milliseconds from produce() to the message in the consumer's hands, at a steady rate.

    The first and the last messages are not counted, so that there are others before and behind all
    that are: what Spark reads last comes up to half a second later than the rest.

    linger.ms is 0 here: librdkafka's default would add its 5 ms to both brokers and hide them.
    """
    producer, problems = _producer(args, **{"linger.ms": 0})
    consumer = _consumer(args)
    consumer.assign([TopicPartition(args.to or args.topic, 0, 0)])
    uncounted = int(args.uncounted_seconds * args.rate)
    total = int(args.seconds * args.rate) + 2 * uncounted
    padding = bytes(LATENCY_RECORD_BYTES - _SENT_AT.size)

    def send() -> None:
        started = time.perf_counter()
        for index in range(total):
            pause = started + index / args.rate - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            producer.produce(args.topic, _SENT_AT.pack(time.perf_counter_ns()) + padding)
            producer.poll(0)

    sender = threading.Thread(target=send)
    sender.start()
    latencies_ms: list[float] = []
    while len(latencies_ms) < total:
        message = consumer.poll(SILENCE_S_MAX)
        now_ns = time.perf_counter_ns()
        if message is None or message.error() is not None:
            raise LoadError(f"after {len(latencies_ms)} messages: {message and message.error()}")
        latencies_ms.append((now_ns - _SENT_AT.unpack_from(message.value())[0]) / 1e6)
    sender.join()
    consumer.close()
    if problems or producer.flush(FLUSH_TIMEOUT_S):
        raise LoadError("not all messages were delivered")
    ordered = sorted(latencies_ms[uncounted : total - uncounted])
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("produce", "transactions", "consume", "latency"))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", help="where messages of --topic are copied to, for latency")
    parser.add_argument("--acks", default="all")
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--transactions", type=int, default=0)
    parser.add_argument("--payload", type=Path, help="a file with a value to produce in each line")
    parser.add_argument("--set", action="append", default=[], metavar="PROPERTY=VALUE")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--uncounted-seconds", type=float, default=0.5, help="at either end")
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    known = {
        "produce": produce,
        "transactions": transactions,
        "consume": consume,
        "latency": latency,
    }
    work = known[args.what]
    try:
        json.dump(work(args), sys.stdout)
    except (LoadError, KafkaException) as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()

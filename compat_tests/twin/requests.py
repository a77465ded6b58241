"""Request bodies that many tests need, in a form that fits every version of their API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Side

Body = Callable[[Side], Plain]


def produce(
    topic: str,
    records: bytes | Mapping[int, bytes | None] | None,
    *,
    acks: int = -1,
    timeout: int = 30_000,
    transactional_id: str | None = None,
) -> Body:
    """Produce to one topic: to partition 0, or to the partitions of a mapping."""
    by_partition = records if isinstance(records, Mapping) else {0: records}
    return produce_many(
        [(topic, index, held) for index, held in by_partition.items()],
        acks=acks,
        timeout=timeout,
        transactional_id=transactional_id,
    )


def produce_many(
    entries: Sequence[tuple[str, int, bytes | None]],
    *,
    acks: int = -1,
    timeout: int = 30_000,
    transactional_id: str | None = None,
) -> Body:
    """Produce to (topic, partition, records); neighbours of one topic share its entry."""

    def body(side: Side) -> Plain:
        topics: list[Plain] = []
        for topic, index, records in entries:
            if not topics or topics[-1]["name"] != topic:
                entry = {"name": topic, "topic_id": side.topic_id(topic), "partition_data": []}
                topics.append(entry)
            topics[-1]["partition_data"].append({"index": index, "records": records})
        return {
            "transactional_id": transactional_id,
            "acks": acks,
            "timeout": timeout,
            "topic_data": topics,
        }

    return body


def fetch_partition(partition: int = 0, offset: int = 0, **fields: int) -> Plain:
    base = {
        "partition": partition,
        "fetch_offset": offset,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    return {**base, **fields}


def fetch(
    topics: Mapping[str, Sequence[Plain]],
    *,
    forgotten: Mapping[str, Sequence[int]] | None = None,
    session: Callable[[Side], int] | int = 0,
    **fields: Any,
) -> Body:
    """Fetch of partitions (as `fetch_partition` makes them) by topic."""

    def body(side: Side) -> Plain:
        base = {
            "replica_id": -1,
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 25,
            "isolation_level": 0,
            "session_id": session(side) if callable(session) else session,
            "session_epoch": -1,
            "rack_id": "",
            "topics": [
                {"topic": name, "topic_id": side.topic_id(name), "partitions": list(partitions)}
                for name, partitions in topics.items()
            ],
            "forgotten_topics_data": [
                {"topic": name, "topic_id": side.topic_id(name), "partitions": list(partitions)}
                for name, partitions in (forgotten or {}).items()
            ],
        }
        return {**base, **fields}

    return body


def list_offsets(topic: str, *timestamps: int, partition: int = 0, **fields: Any) -> Plain:
    """ListOffsets of one partition; several timestamps would be duplicate partitions."""
    epoch = fields.pop("current_leader_epoch", -1)
    partitions = [
        {"partition_index": partition, "current_leader_epoch": epoch, "timestamp": timestamp}
        for timestamp in timestamps
    ]
    base = {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [{"name": topic, "partitions": partitions}],
        "timeout": 10_000,
    }
    return {**base, **fields}

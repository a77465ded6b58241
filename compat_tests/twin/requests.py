"""Request bodies that many tests need, in a form that fits every version of their API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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


class Committed(NamedTuple):
    """An offset as it is committed for one partition."""

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


def commit_topics(*topics: tuple[str, Mapping[int, Committed | int]]) -> Callable[[Side], Any]:
    """The topics of an OffsetCommit, by name and by id; a bare number is an offset alone."""

    def partition(index: int, committed: Committed | int) -> Plain:
        said = Committed(committed) if isinstance(committed, int) else committed
        return {
            "partition_index": index,
            "committed_offset": said.offset,
            "committed_leader_epoch": said.leader_epoch,
            "committed_metadata": said.metadata,
        }

    def per_side(side: Side) -> list[Plain]:
        return [
            {
                "name": name,
                "topic_id": side.topic_id(name),
                "partitions": [partition(index, one) for index, one in committed.items()],
            }
            for name, committed in topics
        ]

    return per_side


def offset_commit(
    group: str, *topics: tuple[str, Mapping[int, Committed | int]], **fields: Any
) -> Body:
    """OffsetCommit of somebody who is no member, unless the fields say otherwise."""

    def body(side: Side) -> Plain:
        nobody = {"generation_id_or_member_epoch": -1, "member_id": ""}
        return {"group_id": group, **nobody, "topics": commit_topics(*topics)(side), **fields}

    return body


Asked = Mapping[str, Sequence[int]]


def offset_fetch(*groups: tuple[str, Asked | None], **fields: Any) -> Body:
    """OffsetFetch of partitions by topic, or of all topics. Before version 8 of the first group."""

    def topics(side: Side, asked: Asked | None) -> list[Plain] | None:
        if asked is None:
            return None
        return [
            {"name": name, "topic_id": side.topic_id(name), "partition_indexes": list(indexes)}
            for name, indexes in asked.items()
        ]

    def body(side: Side) -> Plain:
        entries = [
            {"group_id": group, "topics": topics(side, asked), "member_epoch": -1, **fields}
            for group, asked in groups
        ]
        stable = {"require_stable": bool(fields.get("require_stable"))}
        first = {key: entries[0][key] for key in ("group_id", "topics")} if entries else {}
        allowed = {"group_id", "topics", "member_id", "member_epoch"}
        kept = [{key: one[key] for key in one if key in allowed} for one in entries]
        return {**first, "groups": kept, **stable}

    return body

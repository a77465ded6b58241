"""How offsets go: with their group, with their topic, or because they are old.

There may be very many, so each of these is an iterator: it does a bounded piece of work, and yields
where others may have their turn. What is found is appended before the yield, because afterwards it
may not be true any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from klamm.coordinator.group import Group, Shard
from klamm.coordinator.offsets import OFFSETS_PER_STEP, Offsets, group_not_found, tombstones
from klamm.wire.messages.stored.classic_group import OffsetCommitValue
from klamm.wire.schema import ZERO_UUID

NO_EXPIRY_TIME = -1

Partition = tuple[str, int]


def remove_expired(shard: Shard, offsets: Offsets, now_ms: int) -> Iterator[None]:
    """Remove offsets that nobody committed for long, then groups without offsets and members.

    Args:
        now_ms: wall time. The caller sees to it that it does not jump ahead.

    Raises:
        CoordinatorError: the log refuses; what is left waits for the next time.
    """
    for group_id in list(shard.groups):
        for partitions in _pieces(offsets, group_id):
            group = shard.groups.get(group_id)
            if group is None:
                break
            expired = _expired(group, shard, offsets, partitions, now_ms)
            if expired:
                shard.journal.append(tombstones(group_id, expired))
            yield
        group = shard.groups.get(group_id)
        if group is not None and group.is_empty and not any(offsets.partitions(group_id)):
            shard.journal.append(group.tombstones())
        yield


def _pieces(offsets: Offsets, group_id: str) -> Iterator[list[Partition]]:
    partitions = list(offsets.partitions(group_id))
    for start in range(0, len(partitions), OFFSETS_PER_STEP):
        yield partitions[start : start + OFFSETS_PER_STEP]


def _expired(
    group: Group,
    shard: Shard,
    offsets: Offsets,
    partitions: list[Partition],
    now_ms: int,
) -> list[Partition]:
    expires_at = group.offsets_expire_after_ms(shard.settings.offsets_retention_ms)
    if expires_at is None:
        return []
    return [
        (topic, index)
        for topic, index in partitions
        if (value := offsets.of(group.group_id).get(topic, {}).get(index)) is not None
        and not group.is_subscribed_to(topic)
        and not offsets.pending.is_pending(group.group_id, topic, index)
        and now_ms >= _expiry_time(value, expires_at)
    ]


def _expiry_time(value: OffsetCommitValue, expires_at: Callable[[int], int]) -> int:
    if value.expire_timestamp != NO_EXPIRY_TIME:
        return value.expire_timestamp
    return expires_at(value.commit_timestamp)


def remove_group(shard: Shard, offsets: Offsets, group_id: str) -> Iterator[None]:
    """Remove a group and all its offsets, because somebody asks for it.

    Raises:
        CoordinatorError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or the log's refusal. If somebody
            joins between two steps, the offsets that are left stay.
    """
    while True:
        group = shard.groups.get(group_id)
        if group is None:
            raise group_not_found(group_id)
        group.check_deletion()
        records = tombstones(group_id, islice(offsets.partitions(group_id), OFFSETS_PER_STEP))
        is_last = len(records) < OFFSETS_PER_STEP
        if is_last:
            records += group.tombstones()
        shard.journal.append(records)
        if is_last:
            return
        yield


def remove_orphans(shard: Shard, offsets: Offsets) -> Iterator[None]:
    """Remove the offsets of topics that are no more; a new topic of the same name is another one.

    Raises:
        CoordinatorError: the log refuses; what is left waits for the next time.
    """
    for group_id in offsets.group_ids:
        for partitions in _pieces(offsets, group_id):
            orphans = [
                (topic, index)
                for topic, index in partitions
                if _is_orphan(shard, topic, offsets.values(group_id, topic, index))
            ]
            if orphans:
                shard.journal.append(tombstones(group_id, orphans))
            yield


def _is_orphan(shard: Shard, topic: str, values: Iterable[OffsetCommitValue]) -> bool:
    """A partition with a pending offset of the new topic has to wait for its transaction."""
    known = shard.topics.find(topic)
    return known is None or all(
        value.topic_id not in (ZERO_UUID, known.topic_id) for value in values
    )

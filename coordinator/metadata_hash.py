"""A number that changes with the topics of a consumer group (KIP-1101).

It is stored with the group, so that a coordinator sees after a restart whether topics came, went,
grew or moved meanwhile. It is Kafka's number bit for bit: a group that Kafka wrote is not
rebalanced because klamm serves it now, nor the other way round.

The hash is XXH3 with 64 bits over little-endian numbers. A string counts as its UTF-16 code units
followed by how many they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from xxhash import xxh3_64_intdigest

from klamm.coordinator.java_strings import sort_key
from klamm.coordinator.ports import TopicDescription

# Kafka calls it the magic byte; it is to change when something else is hashed.
_MAGIC = 0


def topic_hash(topic: TopicDescription) -> int:
    """The hash of a topic: its id, name and partitions, and their racks."""
    parts = [
        bytes([_MAGIC]),
        struct.pack("<QQ", *struct.unpack(">QQ", topic.topic_id.bytes)),
        _string(topic.name),
        _int(topic.partition_count),
    ]
    for partition, racks in enumerate(topic.racks):
        parts.append(_int(partition))
        for rack in sorted(racks, key=sort_key):
            # Kafka puts the length of a rack on both sides of it.
            parts += (_length(rack), _string(rack))
    return _hash(b"".join(parts))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """The hash of a group from those of its topics by name.

    Topics that do not exist are left out; 0 if there is none.
    """
    if not topic_hashes:
        return 0
    hashes = [topic_hashes[name] for name in sorted(topic_hashes, key=sort_key)]
    return _hash(struct.pack(f"<{len(hashes)}q", *hashes))


def _int(value: int) -> bytes:
    return struct.pack("<i", value)


def _length(text: str) -> bytes:
    return _int(len(text.encode("utf-16-le")) // 2)


def _string(text: str) -> bytes:
    return text.encode("utf-16-le") + _length(text)


def _hash(data: bytes) -> int:
    """As a Java long, which is signed."""
    hashed = xxh3_64_intdigest(data)
    return hashed - 2**64 if hashed >= 2**63 else hashed

"""Questions about the hashes that decide what Kafka stores, and where."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

Question = dict[str, Any]

TEXTS = [
    "",
    "g",
    "group-1",
    "console-consumer-12345",
    "polygenelubricants",  # its hash is the one number that has no absolute value in 32 bits
    "connect-cluster.état",
    "\u4e2d\u6587",
    "\U0001f600 \U0001f680",
    "\uff5e\U0001f600",
    "\x00",
    "x" * 300,
]
PARTITION_COUNTS = (1, 2, 50, 101)


def questions() -> list[tuple[str, Question]]:
    """What is asked, and with which arguments."""
    rng = random.Random(1101)
    return [
        *(
            ("partition_for", {"key": text, "partition_count": count})
            for text in (*TEXTS, *(str(_uuid(rng)) for _ in range(10)))
            for count in PARTITION_COUNTS
        ),
        *(("topic_hash", _topic(rng, partitions)) for partitions in (1, 1, 2, 3, 10, 100, 300)),
        *(
            ("topic_hash", {**_topic(rng, 2), "name": name})
            for name in ("t", "\U0001f600", "a" * 249)
        ),
        *(
            ("group_hash", {"topic_hashes": _topic_hashes(rng, n)})
            for n in (0, 1, 2, 3, 10, 40, 200)
        ),
        # Java compares names by UTF-16 code units.
        ("group_hash", {"topic_hashes": {"\uff5e": 1, "\U0001f600": 2}}),
    ]


def _topic(rng: random.Random, partitions: int) -> Question:
    names = ["", "a", "rack-1", "rack-10", "rack-2", "\uff5e", "\U0001f600"]
    racks = [rng.sample(names, rng.randint(0, 3)) for _ in range(partitions)]
    return {"name": f"topic-{partitions}", "topic_id": str(_uuid(rng)), "racks": racks}


def _topic_hashes(rng: random.Random, count: int) -> dict[str, int]:
    return {f"topic-{rng.randrange(1000)}": rng.getrandbits(64) - 2**63 for _ in range(count)}


def _uuid(rng: random.Random) -> UUID:
    return UUID(int=rng.getrandbits(128))

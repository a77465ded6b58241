"""What a streaming query's checkpoint says: the batches that are done, and where they ended.

A checkpoint has a file `offsets/N` when batch N has been planned and a file `commits/N` when it is
done. The first line of a file is its version; in `offsets` a line of settings and one line for each
source follow.
"""

from __future__ import annotations

import json
from pathlib import Path

Offsets = dict[str, dict[int, int]]
"""For each topic and partition the offset behind the last record that was read."""


def committed_batch(checkpoint: Path) -> int | None:
    """The last batch that is done, None before the first."""
    batches = [int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdigit()]
    return max(batches, default=None)


def committed_offsets(checkpoint: Path) -> Offsets:
    """How far the query has read, over all its sources; empty before its first batch."""
    batch = committed_batch(checkpoint)
    if batch is None:
        return {}
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    read: Offsets = {}
    for line in lines[2:]:
        # A source that has had nothing yet is written as "-".
        if line.startswith("{"):
            read.update(parsed(line))
    return read


def parsed(offsets: str) -> Offsets:
    """Spark's own JSON of offsets: {"topic": {"0": 17}}."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in json.loads(offsets).items()
    }


def watermark_ms(checkpoint: Path) -> int:
    """The watermark of the last batch that is done; 0 before there is one."""
    batch = committed_batch(checkpoint)
    if batch is None:
        return 0
    settings = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[1]
    return int(json.loads(settings)["batchWatermarkMs"])


def query_id(checkpoint: Path) -> str:
    """The id of the query, the same over all its restarts."""
    return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])

"""A long log that takes little room: segments whose batches have holes in the place of records.

Only headers are written, with the checksum that zeros have, so a gibibyte takes some sixteen
mebibytes on the disk. Lengths, offsets, checksums and indexes are those of a real log; what a
record is, nobody looks at on the way in or out.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path

import crc32c

SEGMENT_BYTES = 1 << 30
BATCH_BYTES = 256 * 1024
HEADER_BYTES = 61
BATCHES = SEGMENT_BYTES // BATCH_BYTES
EPOCH = 0


def lay_out(data_dir: Path, topic: str, segments: int) -> int:
    """Give partition 0 of a topic, whose broker has stopped cleanly, that many full segments.

    Returns:
        The offset where the log ends.
    """
    folder = data_dir / f"{topic}-0"
    for path in folder.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()
    now_ms = int(time.time() * 1000)
    for number in range(segments):
        _write_segment(folder, number * BATCHES, now_ms)
    end = segments * BATCHES
    for suffix in (".log", ".index", ".timeindex"):
        (folder / f"{end:020}{suffix}").touch()
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{EPOCH} 0\n")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        path = data_dir / name
        lines = [line for line in path.read_text().splitlines()[2:] if line.split()[0] != topic]
        lines.append(f"{topic} 0 {end}")
        path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    return end


def _write_segment(folder: Path, base: int, now_ms: int) -> None:
    after_crc = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1)
    checksum = crc32c.crc32c(after_crc + bytes(BATCH_BYTES - HEADER_BYTES))
    rest = struct.pack(">iibI", BATCH_BYTES - 12, EPOCH, 2, checksum) + after_crc
    with (folder / f"{base:020}.log").open("wb") as log:
        for number in range(BATCHES):
            log.seek(number * BATCH_BYTES)
            log.write(struct.pack(">q", base + number) + rest)
        log.truncate(SEGMENT_BYTES)
    entries = (struct.pack(">ii", number, number * BATCH_BYTES) for number in range(1, BATCHES))
    (folder / f"{base:020}.index").write_bytes(b"".join(entries))
    (folder / f"{base:020}.timeindex").write_bytes(struct.pack(">qi", now_ms, 0))

"""Have both brokers write to memory that the machine already has.

A virtual machine may have to ask its host for a page when it first uses it, and the host may take
free pages back within seconds. A log that goes to such pages is written at 400 MB/s and costs 2.4
CPU seconds for each GB, instead of 6,000 MB/s and 0.17: whichever broker met them lost by a
multiple. So the pages that a measurement is about to fill are used right before it, and those that
it has filled are given back right after it, for the next one, which then finds them ready.

Pages for files come from other lists than those of processes, so a file is what uses them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

# What clients and the system want beside what is written.
BESIDE_BYTES = 256 << 20
PART_BYTES = 1 << 20


def make_ready(folder: Path, size: int) -> None:
    """Use the pages that will be given out next, by a file that never gets to the disk.

    Args:
        size: of what will be written, or of what clients will have received at a time.
    """
    path = folder / "pages"
    zeros = bytes(PART_BYTES)
    with path.open("wb", buffering=0) as file:
        for _ in range((size + BESIDE_BYTES) // PART_BYTES):
            file.write(zeros)
    path.unlink()


def give_back(paths: Iterable[Path]) -> None:
    """Forget what the page cache has of files that were synced."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)

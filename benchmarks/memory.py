"""Use the machine's free memory once, before anything is measured.

A virtual machine may get its memory from its host only when it first uses it, page by page, and a
page costs many times what is written into it then: 3-4 CPU seconds for each GB of a log that goes
to such pages, and 0.5 for one that goes to pages used before. Whichever broker came first paid.
"""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

# What the system and the processes that run may want meanwhile.
LEFT_BYTES = 512 << 20
STEP_BYTES = 256 << 20


def _free_bytes() -> int:
    fields = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if line
    )
    return int(fields["MemFree"].split()[0]) * 1024


def warm_up() -> None:
    """Have a process of its own use what is free; it gives all of it back when it ends."""
    subprocess.run([sys.executable, "-m", "benchmarks.memory"], check=True)


def main() -> None:
    count = max(0, _free_bytes() - LEFT_BYTES) // STEP_BYTES
    zeros = bytes(STEP_BYTES)
    held = []
    for index in range(count):
        held.append(mmap.mmap(-1, STEP_BYTES))
        held[-1].write(zeros)
        done_gb = (index + 1) * STEP_BYTES / 1e9
        print(f"\ruse the free memory once: {done_gb:.1f} GB", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()

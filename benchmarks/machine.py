"""What Linux tells about processes and the machine: CPU seconds, resident memory, foreign load.

A ratio of two brokers is only worth something when both had the machine for themselves, so each
measurement also says which share of it other processes took meanwhile.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")

# Columns of /proc/PID/stat, counted from the state, which follows the command in parentheses.
_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14


def _stat(pid: int) -> list[str] | None:
    """The columns of /proc/PID/stat after the command, which may itself contain blanks."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _family(root: int) -> list[list[str]]:
    """The stat columns of a process and of all its living descendants."""
    found = {int(entry.name): _stat(int(entry.name)) for entry in _PROC.glob("[0-9]*")}
    members = {root}
    grown = True
    while grown:
        children = {
            pid for pid, stat in found.items() if stat and int(stat[_PARENT]) in members
        } - members
        members |= children
        grown = bool(children)
    return [stat for pid in members if (stat := found.get(pid))]


def cpu_s(pid: int) -> float:
    """CPU seconds that a process and its descendants have used since they started."""
    columns = (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM)
    return sum(int(stat[column]) for stat in _family(pid) for column in columns) / _TICKS_PER_S


def cpu_ns(pid: int) -> int:
    """CPU nanoseconds of one process alone: for what is too short for the ticks of `cpu_s`."""
    # How Linux numbers the CPU clock of another process; see clock_getcpuclockid(3).
    return time.clock_gettime_ns((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    """Resident memory of one process."""
    pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    return pages * _PAGE_BYTES


def allow_many_files() -> None:
    """Let this process, and what it starts, open as many files as it may: connections are files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _machine_busy_s() -> float:
    """CPU seconds that the whole machine was not idle, time stolen by the hypervisor included."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(value) for value in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_S


@dataclass(frozen=True)
class Usage:
    """A reading of the clocks; the difference of two says who used the machine between them."""

    at_s: float
    machine_busy_s: float
    own_cpu_s: float

    @classmethod
    def now(cls) -> Usage:
        return cls(time.monotonic(), _machine_busy_s(), cpu_s(os.getpid()))

    def others_share(self, later: Usage) -> float:
        """The share of all cores that processes outside this run took until `later`, 0 to 1."""
        busy_s = later.machine_busy_s - self.machine_busy_s
        own_s = later.own_cpu_s - self.own_cpu_s
        available_s = (later.at_s - self.at_s) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, (busy_s - own_s) / available_s)) if available_s else 0.0


def machine_kind() -> str:
    """Processor, cores, memory and system, in one line, without anything that names the host."""
    model = "unknown processor"
    for line in (_PROC / "cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_gib = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES / 2**30
    return (
        f"{model}, {os.cpu_count()} cores, {memory_gib:.0f} GiB memory, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )

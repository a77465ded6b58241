"""Apache Kafka's DumpLogSegments, and what it says, in a form that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compat_tests.apache_kafka import tool

_RECORD = re.compile(
    r"^\| offset: (\d+) (CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) "
    r"sequence: (-?\d+) headerKeys: \[(.*?)\](?: key: (.*?))?(?: payload: (.*))?$"
)
# The tool expects every segment to begin at offset 0, also those of Apache Kafka.
_FIRST_OF_SEGMENT = re.compile(r"^  -1 is followed by (\d+)$")
_FILE = re.compile(r"^Dumping (\S+)$")


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """One record as the tool prints it."""

    offset: int
    timestamp_type: str
    key_size: int
    value_size: int
    sequence: int
    header_keys: str
    payload: str | None


@dataclass(frozen=True, slots=True)
class Dump:
    """The lines of each file, in the order of the files, and what the tool had to say besides."""

    lines: dict[str, list[str]]
    errors: list[str]

    def complaints(self) -> list[str]:
        """Everything that is wrong; the tool goes on and ends well all the same."""
        base_offsets = {int(Path(name).stem) for name in self.lines}
        found = [
            f"{name}: {line}"
            for name, lines in self.lines.items()
            for line in lines
            if line.startswith("baseOffset: ") and not line.endswith("isvalid: true")
        ]
        for line in self.errors:
            first = _FIRST_OF_SEGMENT.match(line)
            explained = first is not None and int(first[1]) in base_offsets
            if not explained and not line.startswith("Non-consecutive offsets in "):
                found.append(line)
        return found

    def only(self, topic: str, suffix: str) -> Dump:
        """The files of one kind of one topic."""
        wanted = f"/{topic}-0/"
        return Dump(
            {
                name: lines
                for name, lines in self.lines.items()
                if wanted in name and name.endswith(suffix)
            },
            [],
        )

    def records(self) -> list[DumpedRecord]:
        """The records of all log files, in the order of the files."""
        found = []
        for lines in self.lines.values():
            for line in lines:
                match = _RECORD.match(line)
                assert match or not line.startswith("| offset"), f"unreadable: {line}"
                if match:
                    offset, kind, _, key_size, value_size, sequence, headers, _, payload = (
                        match.groups()
                    )
                    found.append(
                        DumpedRecord(
                            *(int(offset), kind, int(key_size), int(value_size), int(sequence)),
                            *(headers, payload),
                        )
                    )
        return found


def dump_log(paths: Iterable[Path], *options: str) -> Dump:
    """Let the tool read files of any kind: logs, indexes, producer snapshots."""
    files = ",".join(str(path) for path in paths)
    done = tool("kafka-dump-log", *options, "--files", files, timeout=110)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines: dict[str, list[str]] = {}
    current: list[str] = []
    for line in done.stdout.splitlines():
        match = _FILE.match(line)
        if match:
            current = lines.setdefault(match[1], [])
        else:
            current.append(line)
    return Dump(lines, done.stderr.splitlines())

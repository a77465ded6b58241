"""Processes that members run in: of our worker, of the Java driver, of kcat."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka import tool_command
from compat_tests.clients.java_client import JavaProcess
from compat_tests.clients.kcat import kcat_program
from compat_tests.groups.crew import Crew, Member
from compat_tests.groups.history import Partition

REPOSITORY = Path(__file__).resolve().parent.parent.parent
END_TIMEOUT_S = 30


class Worker:
    """A process with members of the Python libraries; it can be killed with all of them.

    It may run members of several groups: starting a process costs more than most tests.
    """

    def __init__(self, log: Path) -> None:
        self._members: dict[str, tuple[Crew, Member]] = {}
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "compat_tests.groups.worker"],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, crew: Crew, member: Member) -> None:
        self._members[member.address] = (crew, member)
        self._send(
            op="start",
            member=member.address,
            library=member.library,
            settings=dict(member.settings),
            topics=list(member.topics),
            commit=member.commit,
            pause_s=member.pause_s,
        )

    def ask(self, member: Member, what: str, arguments: Sequence[Any]) -> None:
        self._send(op="ask", member=member.address, what=what, arguments=list(arguments))

    def close(self, member: Member) -> None:
        self._send(op="close", member=member.address)

    def kill(self, member: Member) -> None:
        """End the process as a crash would; what it has told until then is heard."""
        if self._process.poll() is None:
            self._process.kill()
            self._finish("killed")

    def end(self) -> None:
        """All members leave, and the process ends."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._finish("closed")

    def _finish(self, how: str) -> None:
        self._process.wait()
        self._reader.join(END_TIMEOUT_S)
        for crew, member in self._members.values():
            crew.gone(member, how)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A killed process may have begun a line.
            if line.endswith("\n"):
                event = json.loads(line)
                crew, member = self._members[event["member"]]
                crew.hear(member, event)

    def _send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()


class JavaHost:
    """Members in a Java process: that of the test run, or one that is there to be killed."""

    def __init__(self, process: JavaProcess) -> None:
        self._process = process
        self._ids: dict[str, int] = {}

    def start(self, crew: Crew, member: Member) -> None:
        command_id = self._process.send(
            "member",
            config=dict(member.settings),
            topics=list(member.topics),
            commit=member.commit,
            pause_ms=int(member.pause_s * 1000),
        )
        self._ids[member.address] = command_id
        threading.Thread(target=self._read, args=(crew, member, command_id), daemon=True).start()

    def ask(self, member: Member, what: str, arguments: Sequence[Any]) -> None:
        target = self._ids[member.address]
        self._process.call("ask", target=target, what=what, arguments=list(arguments))

    def close(self, member: Member) -> None:
        self._process.call("stop", target=self._ids[member.address])

    def kill(self, member: Member) -> None:
        """End the process as a crash would, with all members that it has."""
        self._process.kill()

    def end(self) -> None:
        """The process ends; members that it still has leave, or are missed."""
        self._process.close()

    def _read(self, crew: Crew, member: Member, command_id: int) -> None:
        while True:
            reply = self._process.next_reply(command_id, timeout_s=None)
            if "event" in reply:
                crew.hear(member, reply)
            elif "error" in reply:
                error = f"{reply['error']}: {reply['detail']}"
                crew.hear(member, {"event": "failed", "error": error})
                return
            else:
                crew.hear(member, {"event": "closed"})
                return


class ProcessHost(ABC):
    """Members that are command line tools: each is a process, which commits by itself."""

    # What a tool that was told to end by SIGTERM ends with.
    ended_by_us: Sequence[int]

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._threads: list[threading.Thread] = []

    @abstractmethod
    def command(self, member: Member) -> list[str]: ...

    @abstractmethod
    def record(self, line: str, member: Member) -> tuple[str, int, int, str]:
        """Topic, partition, offset and value in a line that the tool prints."""

    def assignment(self, line: str) -> Sequence[Partition] | None:
        """The partitions that the tool tells of on standard error, if it does."""
        return None

    def start(self, crew: Crew, member: Member) -> None:
        process = subprocess.Popen(
            self.command(member),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes[member.address] = process
        for target in (self._read_records, self._read_errors):
            thread = threading.Thread(target=target, args=(crew, member, process), daemon=True)
            thread.start()
            self._threads.append(thread)

    def ask(self, member: Member, what: str, arguments: Sequence[Any]) -> None:
        raise ValueError(f"{member.library} answers no questions")

    def close(self, member: Member) -> None:
        self._processes[member.address].terminate()

    def kill(self, member: Member) -> None:
        """End this one process as a crash would."""
        self._processes[member.address].kill()

    def end(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)
        for process in self._processes.values():
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                stream.close()

    def _read_records(self, crew: Crew, member: Member, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            # A killed process may have begun a line.
            if line.endswith("\n"):
                record = self.record(line.rstrip("\n"), member)
                crew.hear(member, {"event": "polled", "records": [record]})
        code = process.wait()
        if code in self.ended_by_us:
            crew.hear(member, {"event": "closed"})
        else:
            crew.hear(member, {"event": "failed", "error": f"code {code}"})

    def _read_errors(self, crew: Crew, member: Member, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            partitions = self.assignment(line.rstrip("\n"))
            if partitions is not None:
                crew.hear(member, {"event": "rebalanced"})
                crew.hear(member, {"event": "assignment", "partitions": partitions})


_REBALANCED = re.compile(r"^% Group \S+ rebalanced \(memberid .*\): (assigned|revoked):? ?(.*)$")
_PARTITION = re.compile(r"(\S+) \[(\d+)\]")


class KcatHost(ProcessHost):
    """kcat's balanced consumer."""

    ended_by_us = (0,)

    def command(self, member: Member) -> list[str]:
        settings = dict(member.settings)
        bootstrap, group = settings.pop("bootstrap.servers"), settings.pop("group.id")
        options = [part for key, value in settings.items() for part in ("-X", f"{key}={value}")]
        return [
            *(kcat_program(), "-b", bootstrap, *options, "-u", "-f", "%t %p %o %s\\n"),
            *("-G", group, *member.topics),
        ]

    def record(self, line: str, member: Member) -> tuple[str, int, int, str]:
        topic, partition, offset, value = line.split(" ", 3)
        return topic, int(partition), int(offset), value

    def assignment(self, line: str) -> Sequence[Partition] | None:
        match = _REBALANCED.match(line)
        if match is None:
            return None
        named = _PARTITION.findall(match[2]) if match[1] == "assigned" else []
        return [(topic, int(number)) for topic, number in named]


class ConsoleHost(ProcessHost):
    """kafka-console-consumer, which tells nobody what it is assigned."""

    # Java's code after SIGTERM, when all that is to be done at the end was done.
    ended_by_us = (128 + signal.SIGTERM,)

    def command(self, member: Member) -> list[str]:
        settings = dict(member.settings)
        (topic,) = member.topics
        own = ("--bootstrap-server", settings.pop("bootstrap.servers"), "--topic", topic)
        group = ("--group", settings.pop("group.id"))
        shown = [
            part
            for name in ("partition", "offset")
            for part in ("--formatter-property", f"print.{name}=true")
        ]
        given = [
            part
            for key, value in settings.items()
            for part in ("--command-property", f"{key}={value}")
        ]
        return tool_command("kafka-console-consumer", *own, *group, *shown, *given, heap="128M")

    def record(self, line: str, member: Member) -> tuple[str, int, int, str]:
        partition, offset, value = line.split("\t", 2)
        (topic,) = member.topics
        number, place = (int(shown.rsplit(":", 1)[1]) for shown in (partition, offset))
        return topic, number, place, value

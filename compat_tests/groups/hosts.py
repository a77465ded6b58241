"""Processes that members run in: of our worker, of the Java driver, of kcat."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka import MissingRequirementError
from compat_tests.clients.java_client import JavaProcess
from compat_tests.groups.crew import Crew, Member

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

    def kill(self) -> None:
        """End the process as a crash would; what it has told until then is heard."""
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
    """Members in the one Java process of the test run; they can leave but not be killed."""

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


_REBALANCED = re.compile(r"^% Group \S+ rebalanced \(memberid .*\): (assigned|revoked):? ?(.*)$")
_PARTITION = re.compile(r"(\S+) \[(\d+)\]")


class KcatHost:
    """kcat's balanced consumer: each member is a process, which commits by itself."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._threads: list[threading.Thread] = []

    def start(self, crew: Crew, member: Member) -> None:
        program = shutil.which("kcat")
        if program is None:
            raise MissingRequirementError("kcat is needed; on Debian: apt-get install kcat")
        settings = dict(member.settings)
        bootstrap, group = settings.pop("bootstrap.servers"), settings.pop("group.id")
        options = [part for key, value in settings.items() for part in ("-X", f"{key}={value}")]
        process = subprocess.Popen(
            [
                *(program, "-b", bootstrap, *options, "-u", "-f", "%t %p %o %s\\n"),
                *("-G", group, *member.topics),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes[member.address] = process
        for target in (_read_kcat_records, _read_kcat_rebalances):
            thread = threading.Thread(target=target, args=(crew, member, process), daemon=True)
            thread.start()
            self._threads.append(thread)

    def ask(self, member: Member, what: str, arguments: Sequence[Any]) -> None:
        raise ValueError("kcat answers no questions")

    def close(self, member: Member) -> None:
        self._processes[member.address].terminate()

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


def _read_kcat_records(crew: Crew, member: Member, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        topic, partition, offset, value = line.rstrip("\n").split(" ", 3)
        record = (topic, int(partition), int(offset), value)
        crew.hear(member, {"event": "polled", "records": [record]})
    code = process.wait()
    ended = {"event": "closed"} if code == 0 else {"event": "failed", "error": f"code {code}"}
    crew.hear(member, ended)


def _read_kcat_rebalances(crew: Crew, member: Member, process: subprocess.Popen[str]) -> None:
    """kcat tells its assignments on standard error."""
    assert process.stderr is not None
    for line in process.stderr:
        match = _REBALANCED.match(line.rstrip("\n"))
        if match is None:
            continue
        named = _PARTITION.findall(match[2]) if match[1] == "assigned" else []
        partitions = [(topic, int(number)) for topic, number in named]
        crew.hear(member, {"event": "rebalanced"})
        crew.hear(member, {"event": "assignment", "partitions": partitions})

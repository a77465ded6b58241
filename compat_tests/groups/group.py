"""A group on a broker: its topics, its members of any kind, and what they were sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from compat_tests.clients.fixtures import Broker, create_topic
from compat_tests.clients.java_client import JavaProcess
from compat_tests.groups.crew import Crew, Host, Member
from compat_tests.groups.history import Partition
from compat_tests.groups.hosts import ConsoleHost, JavaHost, KcatHost, Worker
from compat_tests.groups.kinds import Kind
from compat_tests.groups.stream import committed_offsets

SEND_TIMEOUT_S = 30
COMMITTED_TIMEOUT_S = 40

AnyHost = Worker | JavaHost | KcatHost | ConsoleHost


class Group:
    """Members share the hosts of the test run, unless one is started to be killed."""

    def __init__(self, broker: Broker, names: Iterator[str], hosts: Hosts) -> None:
        self.broker = broker
        self.id = next(names)
        self.crew = Crew()
        self.sent: list[str] = []
        self._names = names
        self._hosts = hosts
        self._alone: list[AnyHost] = []
        self._producer: Producer | None = None

    def create_topic(self, partitions: int) -> str:
        name = next(self._names)
        create_topic(self.broker.bootstrap, name, partitions)
        return name

    def send(self, topic: str, partitions: int, count: int) -> list[str]:
        """Send so many records to each partition, and wait until they are stored."""
        if self._producer is None:
            settings = {"bootstrap.servers": self.broker.bootstrap, "linger.ms": 5, "log_level": 0}
            self._producer = Producer(settings)
        values = [
            f"{topic}/{partition}/{len(self.sent) + number}"
            for partition in range(partitions)
            for number in range(count)
        ]
        for value in values:
            self._producer.produce(topic, value, partition=int(value.rsplit("/", 2)[1]))
        assert self._producer.flush(SEND_TIMEOUT_S) == 0
        self.sent += values
        return values

    def start(
        self,
        kind: Kind,
        name: str,
        topics: Sequence[str],
        *,
        alone: bool = False,
        beside: Member | None = None,
        commit: str | None = "sync",
        pause_s: float = 0.0,
        **settings: Any,
    ) -> Member:
        """Start a member.

        Args:
            alone: in a process of its own, which `kill` ends.
            beside: in the process of this member, which may be of another group.
            settings: as `Kind.settings` takes them.
        """
        own = kind.settings(self.broker.bootstrap, self.id, **settings)
        commits = None if kind.library in ("kcat", "console") else commit
        return self.crew.add(
            *(beside.host if beside else self._host(kind, alone), name, kind.library, own, topics),
            commit=commits,
            pause_s=pause_s,
        )

    def kill(self, member: Member) -> None:
        """The process of a member that was started alone ends as in a crash."""
        member.host.kill(member)

    def stop_alone(self, member: Member) -> None:
        """A member that was started alone leaves, and its process ends."""
        assert isinstance(member.host, Worker)
        member.host.end()

    def wait_until_committed(
        self, stored: Mapping[Partition, Sequence[str]]
    ) -> dict[Partition, int]:
        """Wait until the broker says that the end of each partition has been committed.

        The members may never tell: one that was killed may have committed, and not have heard of
        it. Then nobody reads the partition again.
        """
        ends = {partition: len(values) for partition, values in stored.items()}
        deadline = time.monotonic() + COMMITTED_TIMEOUT_S
        while True:
            committed = committed_offsets(self.broker.bootstrap, self.id, list(ends))
            behind = {one for one, end in ends.items() if committed[one] != end}
            if not behind:
                return committed
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.crew.last_commits(behind)} instead of {ends}")
            self.crew.wait_briefly()

    def wait_for_more_commits(self, count: int) -> None:
        """Wait until so many further records are behind commits that were acknowledged."""
        before = self._records_committed()
        self.crew.wait(
            lambda: self._records_committed() >= before + count, f"commits of {count} records"
        )

    def _records_committed(self) -> int:
        highest: dict[Partition, int] = {}
        for topic, partition, offset in self.crew.committed():
            highest[topic, partition] = max(offset, highest.get((topic, partition), 0))
        return sum(highest.values())

    def wait_until_shared(self, members: Sequence[Member], topic: str, partitions: int) -> None:
        """Each partition of the topic has one owner among these members."""
        wanted: list[Partition] = [(topic, number) for number in range(partitions)]
        self.crew.wait_until_assigned(members, wanted)

    def wait_until_each_has(self, members: Sequence[Member], count: int) -> None:
        """Each of these members has so many partitions."""
        self.crew.wait(
            lambda: all(len(member.partitions or ()) == count for member in members),
            f"{count} for each",
        )

    def end(self) -> None:
        """No member is left, however the test ended."""
        for host in self._alone:
            host.end()
        for member in self.crew.members:
            if member.ended is None:
                member.host.close(member)
        ended = [member for member in self.crew.members if member.ended is None]
        self.crew.wait(lambda: all(member.ended for member in ended), "the end of all members")

    def _host(self, kind: Kind, alone: bool) -> Host:
        if not alone:
            return self._hosts.of(kind.library)
        self._alone.append(self._hosts.new(kind.library))
        return self._alone[-1]


class Hosts:
    """The processes in which members of all tests run."""

    def __init__(self, java: Callable[[], JavaProcess], log: Path) -> None:
        self._java = java
        self._log = log
        self._known: dict[str, AnyHost] = {}

    def of(self, library: str) -> Host:
        if library not in self._known:
            # The Java process of the test run is not ours alone: who made it ends it.
            shared = library == "java"
            self._known[library] = JavaHost(self._java()) if shared else self.new(library)
        return self._known[library]

    def new(self, library: str) -> AnyHost:
        """A host that no other member has."""
        if library == "java":
            return JavaHost(JavaProcess())
        if library == "kcat":
            return KcatHost()
        if library == "console":
            return ConsoleHost()
        return Worker(self._log)

    def end(self) -> None:
        for host in self._known.values():
            if not isinstance(host, JavaHost):
                host.end()

"""The members of a group as a test sees them, whatever library they are of."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from compat_tests.groups.history import Assigned, Commit, History, Partition, Polled

WAIT_TIMEOUT_S = 40.0

_NUMBERS = itertools.count(1)


class Host(Protocol):
    """Where a member runs."""

    def start(self, crew: Crew, member: Member) -> None: ...

    def ask(self, member: Member, what: str, arguments: Sequence[Any]) -> None: ...

    def close(self, member: Member) -> None: ...

    def kill(self, member: Member) -> None: ...


@dataclass(eq=False)
class Member:
    """One member: what it was told to be, and what it has told so far."""

    name: str
    address: str
    """Its name among all members of all groups that a host has."""
    host: Host
    library: str
    settings: Mapping[str, Any]
    topics: Sequence[str]
    commit: str | None
    pause_s: float
    partitions: frozenset[Partition] | None = None
    """What it has now; None before it has been given anything, or nothing, for the first time."""
    seen: list[frozenset[Partition]] = field(default_factory=list)
    """Everything that it has had, one after the other."""
    rebalances: int = 0
    ended: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list)


class Crew:
    """Members of one group, and what they have told."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.polled: list[Polled] = []
        self.commits: list[Commit] = []
        self.assignments: list[Assigned] = []
        self._changed = threading.Condition()

    def add(
        self,
        host: Host,
        name: str,
        library: str,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        *,
        commit: str | None = "sync",
        pause_s: float = 0.0,
    ) -> Member:
        """Start a member; `wait_until_assigned` says when it has got what it should have."""
        address = f"{next(_NUMBERS)} {name}"
        member = Member(name, address, host, library, settings, topics, commit, pause_s)
        with self._changed:
            self.members.append(member)
        host.start(self, member)
        return member

    def hear(self, member: Member, event: Mapping[str, Any]) -> None:
        """Take in what a member tells; hosts call this from threads of their own."""
        with self._changed:
            kind, at = event["event"], event.get("at", 0.0)
            if kind == "assignment":
                partitions = frozenset((topic, part) for topic, part in event["partitions"])
                if partitions != member.partitions:
                    member.partitions = partitions
                    member.seen.append(partitions)
                times = (event.get("generation", -1), event.get("noticed", at))
                self.assignments.append(Assigned(at, member.address, partitions, *times))
            elif kind == "rebalanced":
                member.rebalances += 1
            elif kind == "polled":
                self.polled += [Polled(at, member.address, *record) for record in event["records"]]
            elif kind in ("committing", "committed", "refused"):
                error = event.get("error", "")
                self.commits += [
                    Commit(at, member.address, kind, topic, part, offset, error)
                    for topic, part, offset in event["offsets"]
                ]
            elif kind == "answer":
                member.answers.append(dict(event))
            else:
                member.ended = event.get("error", kind)
                member.partitions = frozenset()
            self._changed.notify_all()

    def gone(self, member: Member, how: str) -> None:
        """Its host has ended, and the member with it."""
        with self._changed:
            if member.ended is None:
                member.ended = how
                member.partitions = frozenset()
            self._changed.notify_all()

    # Waiting

    def wait(self, done: Callable[[], bool], what: str, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until something holds.

        Raises:
            TimeoutError: when it does not in time; with what the members have.
        """
        with self._changed:
            if not self._changed.wait_for(done, timeout_s):
                raise TimeoutError(f"{what} did not come: {self._summary()}")

    def wait_briefly(self, seconds: float = 0.2) -> None:
        """Wait until anything is told, or for a moment."""
        with self._changed:
            self._changed.wait(seconds)

    def wait_until_assigned(
        self, members: Iterable[Member], partitions: Iterable[Partition]
    ) -> None:
        """Wait until these members share the partitions: each has one owner."""
        crew, wanted = list(members), sorted(partitions)

        def shared() -> bool:
            if any(member.partitions is None for member in crew):
                return False
            return sorted(one for member in crew for one in member.partitions or ()) == wanted

        self.wait(shared, f"an assignment of {len(wanted)} partitions")

    def wait_until_polled(self, values: Iterable[str], timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until all of these values have been handed to some application."""
        missing = set(values)
        looked_at = 0

        def all_came() -> bool:
            nonlocal looked_at
            missing.difference_update(one.value for one in self.polled[looked_at:])
            looked_at = len(self.polled)
            return not missing

        self.wait(all_came, f"{len(missing)} records", timeout_s)

    def ask(self, member: Member, what: str, *arguments: Any) -> Any:
        """A question that the member answers between two polls.

        Raises:
            RuntimeError: when the library raised an error.
        """
        count = len(member.answers)
        member.host.ask(member, what, arguments)
        self.wait(lambda: len(member.answers) > count, f"an answer of {member.name}")
        answer = member.answers[count]
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["answer"]

    def stop(self, *members: Member) -> None:
        """They leave as applications do."""
        for member in members:
            member.host.close(member)
        self.wait(lambda: all(one.ended is not None for one in members), "an end of members")
        failed = [one for one in members if one.ended != "closed"]
        assert not failed, [(one.name, one.ended) for one in failed]

    def check_alive(self, members: Iterable[Member]) -> None:
        """Nobody has ended without being told to."""
        ended = [(one.name, one.ended) for one in members if one.ended is not None]
        assert not ended, ended

    def values(self) -> set[str]:
        with self._changed:
            return {one.value for one in self.polled}

    def committed(self) -> set[tuple[str, int, int]]:
        """Topic, partition and offset of every commit that was acknowledged."""
        return {
            (one.topic, one.partition, one.offset)
            for one in self.commits
            if one.outcome == "committed"
        }

    def last_commits(self, partitions: Container[Partition]) -> dict[Partition, Commit]:
        """What was last told about commits of these."""
        with self._changed:
            found = {(one.topic, one.partition): one for one in self.commits}
        return {partition: last for partition, last in found.items() if partition in partitions}

    def history(self) -> History:
        """All that was told until now."""
        with self._changed:
            return History(list(self.assignments), list(self.polled), list(self.commits))

    def _summary(self) -> str:
        shown = [
            f"{member.name}: {member.ended or sorted(member.partitions or ())}"
            for member in self.members
        ]
        return "; ".join(shown) + f"; {len(self.polled)} records polled"

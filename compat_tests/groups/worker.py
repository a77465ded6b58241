"""A process that runs members of groups, driven by lines of JSON: commands in, events out.

One thread for each member, which polls until it is told to close. What it polled is written out
before it is committed, so that whoever reads the events of a process that was killed knows all that
it may have committed. The events, each with its member and its time on the machine's clock:

    assignment     the partitions that it has now, and the generation, whenever they are others than
                   before; the time is that of the poll's beginning, before which it did not have
                   them, and `noticed` is that of its end, after which it does not have others
    rebalanced     the library has told the application about a rebalance
    polled         records: topic, partition, offset, value
    committing     offsets are about to be committed
    committed      they were, the broker has said so
    refused        they were not; with the error
    answer         of a question that the test asked
    closed, failed the member has ended
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from compat_tests.groups.libraries import LIBRARIES, Consumer, Offsets

POLL_S = 0.05


class Member(threading.Thread):
    """One consumer, used by this thread alone."""

    def __init__(self, command: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._name = command["member"]
        self._command = command
        self._questions: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._closing = threading.Event()
        # The last commit of each partition, and those of them that were refused.
        self._last: dict[tuple[str, int], int] = {}
        self._refused: dict[tuple[str, int], int] = {}

    def ask(self, question: dict[str, Any]) -> None:
        self._questions.put(question)

    def close(self) -> None:
        self._closing.set()

    def run(self) -> None:
        try:
            self._run()
            self._tell("closed")
        except BaseException as failure:
            self._tell("failed", error=f"{type(failure).__name__}: {failure}")

    def _run(self) -> None:
        consumer = LIBRARIES[self._command["library"]](
            self._command["settings"],
            self._command["topics"],
            lambda: self._tell("rebalanced"),
        )
        before: tuple[list[tuple[str, int]], int] | None = None
        try:
            while not self._closing.is_set():
                began = time.monotonic()
                records = consumer.poll(POLL_S)
                now = (consumer.assignment(), consumer.generation())
                if now != before:
                    held = {"partitions": now[0], "generation": now[1]}
                    self._tell("assignment", at=began, noticed=time.monotonic(), **held)
                    before = now
                if records:
                    self._tell("polled", records=records)
                    if self._command["commit"] is not None:
                        self._commit(consumer, _behind(records))
                    time.sleep(self._command["pause_s"])
                elif self._refused:
                    self._commit_again(consumer, now[0])
                while not self._questions.empty():
                    self._answer(consumer, self._questions.get())
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer, offsets: Offsets) -> None:
        """Commit what was polled, with the number of the record as metadata."""
        told = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        self._tell("committing", offsets=told)
        self._last.update(offsets)

        def done(error: str | None) -> None:
            if error is None:
                self._tell("committed", offsets=told)
            else:
                # Not what a later commit has overtaken.
                self._refused = {
                    **self._refused,
                    **{where: at for where, at in offsets.items() if self._last[where] == at},
                }
                self._tell("refused", offsets=told, error=error)

        consumer.commit(offsets, self._command["commit"], done)

    def _commit_again(self, consumer: Consumer, partitions: list[tuple[str, int]]) -> None:
        """Nothing comes any more, and the last commit fell into a rebalance: whoever has its
        partitions now commits them. Another member reads them again, and does it then."""
        refused, self._refused = self._refused, {}
        offsets = {
            where: at
            for where, at in refused.items()
            if where in partitions and self._last[where] == at
        }
        if offsets:
            self._commit(consumer, offsets)

    def _answer(self, consumer: Consumer, question: dict[str, Any]) -> None:
        known: dict[str, Callable[..., Any]] = {
            "committed": consumer.committed,
            "commit": consumer.commit_with_metadata,
            "member_id": consumer.member_id,
        }
        try:
            answer = known[question["what"]](*question["arguments"])
            self._tell("answer", answer=answer)
        except Exception as failure:
            self._tell("answer", error=f"{type(failure).__name__}: {failure}")

    def _tell(self, event: str, **fields: Any) -> None:
        tell({"member": self._name, "event": event, "at": time.monotonic(), **fields})


def _behind(records: list[Any]) -> dict[tuple[str, int], int]:
    """Where each partition goes on behind what was polled."""
    return {(topic, partition): offset + 1 for topic, partition, offset, _ in records}


_WRITING = threading.Lock()


def tell(event: dict[str, Any]) -> None:
    """Write one line, which is out when this returns."""
    with _WRITING:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def main() -> None:
    members: dict[str, Member] = {}
    for line in sys.stdin:
        command = json.loads(line)
        name = command["member"]
        if command["op"] == "start":
            members[name] = Member(command)
            members[name].start()
        elif command["op"] == "ask":
            members[name].ask(command)
        else:
            members[name].close()
    for member in members.values():
        member.close()
    for member in members.values():
        member.join(10)
    # Threads of the libraries that still run must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()

"""A well-behaved client that works all the time, and notices when it has to wait."""

from __future__ import annotations

import socket
import struct
import threading
import time
from types import TracebackType

from compat_tests.clients import raw
from compat_tests.twin.batches import R, batch

PAUSE_S = 0.003
JOIN_TIMEOUT_S = 30.0


class SteadyClient:
    """Asks ApiVersions on one connection, every few milliseconds, and sometimes produces.

    Attributes:
        answers: how many requests were answered without an error.
        longest_wait_s: the longest time from a request to its answer.
    """

    def __init__(self, bootstrap: str, topic: str | None = None) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self.answers = 0
        self.appended = 0
        self.longest_wait_s = 0.0

    def __enter__(self) -> SteadyClient:
        self._thread.start()
        self.wait_for_more(5)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(JOIN_TIMEOUT_S)
        assert not self._thread.is_alive(), "a well-behaved client gets no answer"
        if self._failure is not None and exc is None:
            raise self._failure

    def wait_for_more(self, count: int) -> None:
        """Wait until so many requests beyond those of now were answered."""
        wanted = self.answers + count
        gives_up_at = time.monotonic() + JOIN_TIMEOUT_S
        while self.answers < wanted and self._thread.is_alive():
            assert time.monotonic() < gives_up_at, "a well-behaved client gets no answer"
            time.sleep(PAUSE_S)

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:
            self._failure = failure

    def _run(self) -> None:
        with raw.connect(self._bootstrap, JOIN_TIMEOUT_S) as connection:
            number = 0
            while not self._stopping.is_set():
                number += 1
                if self._topic is not None and number % 10 == 0:
                    body = raw.produce_body(self._topic, batch(R(b"steady")))
                    version = raw.PRODUCE_VERSION
                    reply = self._call(connection, raw.API_PRODUCE, version, body, number)
                    assert raw.produce_outcome(reply) == (0, self.appended)
                    self.appended += 1
                else:
                    reply = self._call(connection, raw.API_API_VERSIONS, 0, b"", number)
                    assert struct.unpack_from(">h", reply) == (0,)
                self.answers += 1
                time.sleep(PAUSE_S)

    def _call(
        self, connection: socket.socket, key: int, version: int, body: bytes, number: int
    ) -> bytes:
        asked = time.monotonic()
        connection.sendall(raw.request_frame(key, version, body, number))
        correlation_id, reply = raw.read_reply(connection)
        self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - asked)
        assert correlation_id == number
        return reply

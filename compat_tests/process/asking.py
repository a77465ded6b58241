"""Questions to a broker that may be away, by a codec that is not klamm's."""

from __future__ import annotations

from types import TracebackType

from compat_tests.twin.codec import Plain, decode_response, encode_request
from compat_tests.twin.connection import Connection

ANSWER_TIMEOUT_S = 10.0


class Asker:
    """One connection, for one question after the other.

    Raises:
        ConnectionError: nobody listens.
    """

    def __init__(self, bootstrap: str) -> None:
        self._connection = Connection(int(bootstrap.rpartition(":")[2]))

    def __enter__(self) -> Asker:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def ask(self, api: str, version: int, body: Plain) -> Plain:
        """Return the reply.

        Raises:
            ConnectionError: the broker has gone away.
        """
        self._connection.send_frame(encode_request(api, version, body))
        frame = self._connection.receive_frame(ANSWER_TIMEOUT_S)
        if frame is None:
            raise ConnectionError("closed instead of an answer")
        return decode_response(api, version, frame)[0]

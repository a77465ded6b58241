"""Sockets of kafka-python, under a name of their own.

kafka-python never closes a socket whose connection is refused, or is given up before it is there.
The garbage collector finds it later, in a test that knows nothing of it. What Python says of these
sockets is ignored (see pyproject.toml), and of no others.
"""

from __future__ import annotations

import socket
import warnings

# See kafka_python.py.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net.inet import KafkaNetSocket


class KafkaPythonSocket(socket.socket):
    """A socket like any other: what tells it is its name."""


def name_sockets() -> None:
    """Let kafka-python make its sockets under that name, in this process."""

    def named(self: object, family: int, sock_type: int, proto: int) -> KafkaPythonSocket:
        return KafkaPythonSocket(family, sock_type, proto)

    KafkaNetSocket.socket = named

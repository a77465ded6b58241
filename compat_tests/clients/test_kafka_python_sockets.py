"""What kafka-python forgets is no fault of ours; what we forget is."""

from __future__ import annotations

import gc
import socket

import pytest
from kafka.net.inet import KafkaNetSocket


def make_socket() -> socket.socket:
    made: socket.socket = KafkaNetSocket().socket(
        socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )
    return made


def test_a_forgotten_socket_of_kafka_python_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        forgotten = make_socket()
        forgotten.connect(server.getsockname())
        del forgotten
        gc.collect()


def test_a_forgotten_socket_of_ours_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        forgotten = [socket.create_connection(server.getsockname())]
        with pytest.warns(ResourceWarning, match="unclosed"):
            forgotten.clear()

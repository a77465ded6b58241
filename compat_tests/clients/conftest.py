"""Fixtures of the client tests."""

from compat_tests.clients.fixtures import (
    client,
    client_named,
    java_process,
    make_topic,
    own_broker,
    topic_names,
)

__all__ = [
    "client",
    "client_named",
    "java_process",
    "make_topic",
    "own_broker",
    "topic_names",
]

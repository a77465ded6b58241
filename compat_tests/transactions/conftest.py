"""Fixtures of the tests of transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.clients.fixtures import (
    client,
    client_named,
    java_process,
    make_topic,
    own_broker,
    topic_names,
)
from compat_tests.transactions.libraries import PYTHON_LIBRARIES, Java, Library, library_named

__all__ = [
    "client",
    "client_named",
    "java_process",
    "make_topic",
    "own_broker",
    "topic_names",
]

LIBRARIES = (*(one.name for one in PYTHON_LIBRARIES), "java")


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Every library with transactions in turn."""
    if request.param == "java":
        return Java(request.getfixturevalue("java_process"))
    return library_named(request.param)


@pytest.fixture
def transactional_ids(topic_names: Iterator[str]) -> Iterator[str]:
    """Ids that no other test uses."""
    return topic_names

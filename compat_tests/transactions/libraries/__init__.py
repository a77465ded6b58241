"""Transactional producers of four libraries, in one form."""

from __future__ import annotations

from compat_tests.transactions.libraries.aio import Aio
from compat_tests.transactions.libraries.confluent import Confluent
from compat_tests.transactions.libraries.java import Java
from compat_tests.transactions.libraries.kafka_python import Python
from compat_tests.transactions.libraries.model import (
    FencedError,
    Library,
    TransactionalProducer,
    TransactionError,
    Transform,
)

__all__ = [
    "PYTHON_LIBRARIES",
    "Aio",
    "Confluent",
    "FencedError",
    "Java",
    "Library",
    "Python",
    "TransactionError",
    "TransactionalProducer",
    "Transform",
    "library_named",
]

# Those that need no Java.
PYTHON_LIBRARIES: tuple[Library, ...] = (Confluent(), Python(), Aio())


def library_named(name: str) -> Library:
    """One of those that need no Java."""
    return next(one for one in PYTHON_LIBRARIES if one.name == name)

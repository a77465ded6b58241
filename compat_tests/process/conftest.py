"""Fixtures of the process tests: processes that end with their test."""

from compat_tests.process.fixtures import start_klamm

__all__ = ["start_klamm"]

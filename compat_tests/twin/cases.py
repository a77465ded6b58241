"""Many small comparisons in one test, all of them shown when some fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Cases:
    """Collects failed comparisons; `with cases.case("name"):` is one of them."""

    def __init__(self) -> None:
        self._failures: list[str] = []

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        try:
            yield
        except AssertionError as failure:
            self._failures.append(f"--- {name}: {failure}")

    def judge(self) -> None:
        assert not self._failures, "\n".join([f"{len(self._failures)} cases:", *self._failures])


@contextmanager
def all_cases() -> Iterator[Cases]:
    """The test fails at the end of the block when any case in it failed."""
    cases = Cases()
    yield cases
    cases.judge()

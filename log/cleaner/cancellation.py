"""The wish that a compaction under way should end, which its thread looks at between batches."""

import threading


class CleaningAborted(Exception):  # noqa: N818 - an outcome that was asked for, as Kafka names it
    """The log was deleted, truncated, closed or is not to be compacted any more."""


class Cancellation:
    """Set once, in any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise CleaningAborted once it is cancelled."""
        if self._event.is_set():
            raise CleaningAborted

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than until it is cancelled.

        Raises:
            CleaningAborted: it is.
        """
        if self._event.wait(seconds):
            raise CleaningAborted

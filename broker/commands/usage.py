"""How the commands speak with their caller: lines out, and what the caller can put right."""

from __future__ import annotations

import sys


class UsageError(Exception):
    """Something that the caller can put right; the text says how, in one line."""


class ReaderLeftError(Exception):
    """Nobody reads the lines any more; there is no use in going on."""


def write_line(text: str) -> None:
    """Write a line to standard output.

    Raises:
        ReaderLeftError: whoever read them has left. It is no OSError: those are about files.
    """
    try:
        sys.stdout.write(f"{text}\n")
    except BrokenPipeError:
        raise ReaderLeftError from None


def flush_lines() -> None:
    """Write out what is still in memory; see write_line."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeftError from None

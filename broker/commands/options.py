"""The options of the commands on files; apart from them, so that a wrong option answers at once."""

from __future__ import annotations

import argparse
from typing import Any


def add_file_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Make `check` and `dump` known."""
    _add_check(commands)
    _add_dump(commands)


def _add_check(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "check", help="read every file of a data directory and name what is wrong"
    )
    parser.add_argument(
        "directories",
        metavar="DIR",
        nargs="+",
        help="a data directory; several for a broker with several log.dirs",
    )


def _add_dump(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "dump", help="print segments, indexes, snapshots and checkpoints as people read them"
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="a file of a data directory, by its own name"
    )
    parser.add_argument(
        "--no-records", action="store_true", help="of a log, the batches without their records"
    )
    parser.add_argument(
        "--from-offset",
        metavar="N",
        type=_offset,
        default=0,
        help="of a log or an index, nothing below this offset",
    )
    parser.add_argument(
        "--limit", metavar="N", type=_count, help="at most so many lines of each file"
    )


def _count(text: str) -> int:
    number = _number(text)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _offset(text: str) -> int:
    number = _number(text)
    if number is None or number < 0:
        raise argparse.ArgumentTypeError(f"{text} is not an offset")
    return number


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None

"""`python -m compat_tests.history FILE`: print what is wrong with a history.

Exit codes: 0 nothing · 1 something, one line each · 2 the file is no history.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from compat_tests.history.events import BadHistoryError, read_history
from compat_tests.history.rules import violations


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m compat_tests.history FILE", file=sys.stderr)
        return 2
    try:
        with Path(arguments[0]).open(encoding="utf-8") as lines:
            events = read_history(lines)
    except (OSError, UnicodeDecodeError, BadHistoryError) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 2
    found = violations(events)
    for what in found:
        print(what)
    print(f"{len(found)} violations in {len(events)} events")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Scripts of commands and what they print: blocks of commands, a line `----`, and the output.

`KLAMM_REWRITE=1 pytest ...` writes what is printed into the scripts, to be read before it is
believed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

MARK = "----"


class Interpreter(Protocol):
    """Runs one line of a script and returns the lines that it prints."""

    def run(self, command: str) -> Iterable[str]: ...


def scripts_beside(test_file: str) -> list[Path]:
    """The scripts in the folder `scripts/` beside a test file."""
    return sorted((Path(test_file).parent / "scripts").glob("*.txt"))


def check_script(path: Path, interpreter: Interpreter) -> None:
    """Run a script from the start; it must print what it says."""
    text = path.read_text()
    printed = "\n\n".join(_run(text, interpreter)) + "\n"
    if os.environ.get("KLAMM_REWRITE"):
        path.write_text(printed)
        return
    assert printed == text


def _run(text: str, interpreter: Interpreter) -> list[str]:
    """The blocks of the script again, with what they print now."""
    blocks = []
    for block in text.strip().split("\n\n"):
        commands = block.split(f"\n{MARK}")[0].split("\n")
        printed = [
            line
            for command in commands
            if command and not command.startswith("#")
            for line in interpreter.run(command)
        ]
        is_comment = all(command.startswith("#") for command in commands)
        blocks.append("\n".join(commands if is_comment else [*commands, MARK, *printed]))
    return blocks

"""Runs the scripts; see script.py for their language.

`KLAMM_REWRITE=1 pytest ...` writes what is printed into the scripts, to be read before it is
believed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from klamm.coordinator.tests.classic.script import Script

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))
MARK = "----"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    text = path.read_text()
    printed = "\n\n".join(run(text)) + "\n"
    if os.environ.get("KLAMM_REWRITE"):
        path.write_text(printed)
        return
    assert printed == text


def run(text: str) -> list[str]:
    """The blocks of the script again, with what they print now."""
    script = Script()
    blocks = []
    for block in text.strip().split("\n\n"):
        commands = block.split(f"\n{MARK}")[0].split("\n")
        printed = [
            line
            for command in commands
            if command and not command.startswith("#")
            for line in script.run(command)
        ]
        is_comment = all(command.startswith("#") for command in commands)
        blocks.append("\n".join(commands if is_comment else [*commands, MARK, *printed]))
    return blocks

"""The README's examples, run as they stand, and what it says about commands, folders and files.

Only the port differs: an example's `:9092` becomes that of a broker of this test. A `text` block
is what the example before it prints. The examples run in order, against one broker, because later
ones read what earlier ones wrote.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

import pytest

from compat_tests.klamm_process import KlammProcess

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "spark_examples" / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
EXAMPLE_TIMEOUT_S = 60

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Also where a line ends in the middle of it.
_ARGS = re.compile(r'`make\s+([a-z-]+)\s+ARGS="([^"`]*)"`')
_LINK = re.compile(r"\]\(([^)#]+)")


@dataclass(frozen=True)
class Example:
    """One block of code, and what it prints; None where the README does not say."""

    language: str
    code: str
    printed: str | None

    @property
    def is_about_make(self) -> bool:
        return self.code.startswith("make")


def examples() -> Iterator[Example]:
    blocks = [(match[1], match[2]) for match in _BLOCK.finditer(README)]
    for index, (language, code) in enumerate(blocks):
        if language != "text":
            behind, text = blocks[index + 1] if index + 1 < len(blocks) else ("", "")
            yield Example(language, code, text if behind == "text" else None)


def test_examples_work(tmp_path: Path) -> None:
    """kcat, kafka-python and confluent-kafka, then a broker inside a program and inside pytest."""
    runnable = [example for example in examples() if not example.is_about_make]
    assert len(runnable) == 5
    with KlammProcess(tmp_path / "data") as klamm:
        for example in runnable:
            printed = run(example, klamm.port, tmp_path)
            if example.printed is not None:
                assert printed == example.printed


def run(example: Example, port: int, folder: Path) -> str:
    code = example.code.replace(":9092", f":{port}")
    if "def test_" in code:
        path = folder / "test_example.py"
        command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", str(path)]
    elif example.language == "python":
        path = folder / "example.py"
        command = [sys.executable, str(path)]
    else:
        assert example.language == "sh", f"a block of {example.language} is not run"
        path = folder / "example.sh"
        command = ["bash", "-euo", "pipefail", str(path)]
    path.write_text(code, encoding="utf-8")
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=EXAMPLE_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_commands_exist() -> None:
    """Every `make` command of the README is one that the Makefile's own list has."""
    menu = subprocess.run(
        ["make", "--no-print-directory", "-C", str(REPOSITORY)],
        capture_output=True,
        text=True,
        timeout=EXAMPLE_TIMEOUT_S,
        check=True,
    ).stdout
    known = {line.split()[1] for line in menu.splitlines()}
    named = set(re.findall(r"\bmake ([a-z]+)", "".join(e.code for e in examples())))
    named |= set(re.findall(r"`make ([a-z]+)", README))
    assert {"serve", "test"} <= named
    assert named <= known


def printed_by_make(target: str, arguments: str) -> list[str]:
    """The command that `make` would run, as its words, without the variables it is given."""
    dry_run = ["make", "--dry-run", "--no-print-directory", "-C", str(REPOSITORY), target]
    done = subprocess.run(
        [*dry_run, f"ARGS={arguments}"],
        capture_output=True,
        text=True,
        timeout=EXAMPLE_TIMEOUT_S,
        check=True,
    )
    # Before it may stand how the environment is made.
    words = shlex.split(done.stdout.splitlines()[-1])
    return list(dropwhile(lambda word: word.startswith("PYTHONPATH="), words))


def test_options_that_are_passed_on_serve(tmp_path: Path) -> None:
    """Each `make serve ARGS="..."` of a page starts a broker, with a port and folder of ours."""
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = sorted({options for target, options in _ARGS.findall(texts) if target == "serve"})
    assert named, "the README shows how options are passed on"
    for number, options in enumerate(named):
        program, *words = printed_by_make("serve", options)
        assert program.endswith("/klamm")
        with AsWritten(tmp_path / str(number), words) as klamm:
            assert klamm.port > 0


class AsWritten(KlammProcess):
    """A broker with the options of a page."""

    def __init__(self, data_dir: Path, words: list[str]) -> None:
        super().__init__(data_dir)
        ours = {"data": str(data_dir)}
        self._words = [ours.get(word, word.replace(":9092", ":0")) for word in words]

    def command(self) -> list[str]:
        return [sys.executable, "-m", "klamm.broker", *self._words]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("", ["--data-dir", "data"]),
        ("--verbose", ["--data-dir", "data", "--verbose"]),
        ("--data-dir elsewhere", ["--data-dir", "elsewhere"]),
        ("--set log.dirs=a,b", ["--set", "log.dirs=a,b"]),
        ("--config server.properties", ["--config", "server.properties"]),
    ],
)
def test_the_folder_of_make_serve_gives_way(arguments: str, options: list[str]) -> None:
    assert printed_by_make("serve", arguments)[1:] == ["serve", *options]


def test_folder_map_is_the_tree() -> None:
    listed = re.findall(r"^\| `([a-z_]+)/` \|", README, re.MULTILINE)
    folders = {path.parent.name for path in REPOSITORY.glob("[a-z]*/*.py")} | {"docs"}
    assert sorted(listed) == sorted(folders)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = _LINK.findall(page.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("http")]
    broken = [target for target in local if not (page.parent / target).exists()]
    assert not broken


def test_every_page_is_linked() -> None:
    pages = {f"docs/{page.name}" for page in (REPOSITORY / "docs").glob("*.md")}
    assert pages <= set(_LINK.findall(README))

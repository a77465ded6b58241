"""The shop of spark_examples, small, on one broker: its programs with the arguments they need."""

from __future__ import annotations

from pathlib import Path

from spark_examples import archive, changelog, enrich, generate, lag, replay, revenue
from spark_examples.command_line import BOOTSTRAP, Program

# Seven hours of the shop. A batch of enrich spans about one of them, and leaves in any order; the
# watermark of revenue has to cover that and what is late.
BLOCKS = 60
WATERMARK = "3 hours"


class Shop:
    """Runs programs by their command lines, with topics and files of this shop's own."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.folder = folder

    def topic(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def run(self, program: Program, *more: str) -> None:
        assert program.main([*self.arguments(program), *more]) == 0

    def run_fails(self, program: Program, *more: str) -> None:
        assert program.main([*self.arguments(program), *more]) == 1

    def check(self, program: Program, *more: str) -> None:
        assert program.main([*self.arguments(program), *more, "--check"]) == 0

    def check_fails(self, program: Program, *more: str) -> None:
        assert program.main([*self.arguments(program), *more, "--check"]) == 1

    def run_and_check(self, program: Program, *more: str) -> None:
        self.run(program, *more)
        self.check(program, *more)

    def arguments(self, program: Program) -> list[str]:
        own = {
            "generate": ["--blocks", str(BLOCKS)],
            "changelog": ["--table", self.path("customers")],
            "enrich": ["--table", self.path("customers"), "--maxOffsetsPerTrigger", "150"],
            "revenue": ["--output", self.path("by-hour"), "--watermark", WATERMARK],
            "replay": [
                *("--output", self.path("by-city"), "--watermark", WATERMARK),
                *("--old-checkpoint", self.path("revenue"), "--old-output", self.path("by-hour")),
                *("--current", self.path("current")),
            ],
            "archive": ["--archive", self.path("archived"), "--subscribe", self.topic("orders")],
            "lag": [],
        }[program.name]
        if program.name not in ("generate", "lag"):
            own += ["--checkpointLocation", self.path(program.name)]
        return [f"--{BOOTSTRAP}", self.bootstrap, "--prefix", self.prefix, *own]

    def path(self, name: str) -> str:
        return str(self.folder / name)


GENERATE, CHANGELOG, ENRICH = generate.PROGRAM, changelog.PROGRAM, enrich.PROGRAM
REVENUE, REPLAY, ARCHIVE, LAG = revenue.PROGRAM, replay.PROGRAM, archive.PROGRAM, lag.PROGRAM

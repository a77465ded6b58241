"""Compiles the modules that every request passes through; pyproject.toml describes the rest.

mypyc makes C of typed Python, and a request then costs two thirds of what it costs interpreted
(docs/performance.md). It is optional: without a C compiler or Python's headers, or with KLAMM_PURE
in the environment, the same sources are installed alone, and do the same. An editable install is
never compiled, so that an edit is in force at once.

A class of a compiled module can't be replaced in part by a test, and interpreted classes can't
inherit from it. So what tests stand in for is not on the list, and neither are the messages, whose
codecs are written at run time.

An attribute of a compiled class lets go of its old value before it takes the new one. Where that
closes a file, another thread could find it in the attribute while it is being closed: so what holds
open files and forgets them (log/open_files.py) is not on the list either.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The way of a produce, a fetch, a metadata request and a commit, from the socket to the log.
COMPILED = {
    "wire": ["codec", "fast_runtime", "header", "uvarint"],
    "wire/records": ["batch", "record", "varint"],
    "log": [
        *("batches", "local_log", "log_read", "offset_index", "opening"),
        *("partition_log", "producer_entry", "producer_state", "readable_log", "readiness"),
        *("replay", "segment", "sync", "time_index", "validate"),
    ],
    "coordinator": [
        *("group", "group_coordinator", "java_strings", "offset_commits", "offsets"),
        *("partitioning", "records"),
    ],
    "broker": [
        *("budget", "connection", "context", "dispatch", "fetch_session", "fetching", "flusher"),
        *("partition", "partitions", "produce_attempts", "reactor", "replies", "steps"),
    ],
    "broker/groups": ["commits"],
    "broker/handlers": ["fetch", "metadata", "offset_commit", "produce"],
}
FOLDERS = ("wire", "log", "coordinator", "broker")
# mypyc takes the names of modules from their paths, and there is no klamm/ folder.
TREE = Path("build/sources")
C_FILES = "build/c"


def reason_for_pure() -> str | None:
    """Why nothing is compiled; None where it can be."""
    if os.environ.get("KLAMM_PURE"):
        return "KLAMM_PURE is set"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(os.environ.get("CC", compiler)) is None:
        return f"there is no C compiler ({compiler})"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python's headers are missing (on Debian: apt-get install python3-dev)"
    return None


def extensions() -> list[Extension]:
    # Metadata and editable installs want none, and to make them takes a while.
    if "bdist_wheel" not in sys.argv:
        return []
    reason = reason_for_pure()
    if reason is not None:
        print(f"klamm is not compiled, which makes it slower: {reason}", file=sys.stderr)
        return []
    from mypyc.build import mypycify

    (TREE / "klamm").mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        link = TREE / "klamm" / folder
        if not link.is_symlink():
            link.symlink_to(Path(folder).resolve())
    os.environ["MYPYPATH"] = str(TREE)
    paths = [
        str(TREE / "klamm" / folder / f"{module}.py")
        for folder, modules in COMPILED.items()
        for module in modules
    ]
    # Types were checked before (make check); here the libraries may not even be installed.
    options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    options += ["--namespace-packages", "--explicit-package-bases"]
    # Without debugging symbols, and at the level where more brings nothing: half a minute less.
    made: list[Extension] = mypycify(
        [*options, *paths],
        group_name="klamm",
        opt_level="1",
        debug_level="0",
        target_dir=C_FILES,
    )
    return made


class BuildOrDoWithout(build_ext):
    """All modules are compiled, or none."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            print(f"klamm is not compiled, which makes it slower: {error}", file=sys.stderr)
            for output in self.get_outputs():
                Path(output).unlink(missing_ok=True)
            self.extensions = []


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildOrDoWithout})

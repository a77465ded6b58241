"""Java programs of this project that run beside Apache Kafka's jars, compiled once.

Java can run a source file as it is, but compiles it at every start, which takes two seconds of a
core; the tests start such programs some dozens of times.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.apache_kafka.jars import MissingRequirementError, cache_dir, jars, java
from compat_tests.apache_kafka.tools import java_command

COMPILE_TIMEOUT_S = 120


def program_command(
    source: Path, *args: str, options: Sequence[str] = (), log_level: str = "WARN"
) -> list[str]:
    """The command line that runs the class which a source file is named after.

    Raises:
        MissingRequirementError: there is no Java that could compile it.
    """
    return java_command(
        source.stem, *args, options=options, log_level=log_level, classes=[_classes(source)]
    )


def _classes(source: Path) -> Path:
    """The folder with what the compiler has made of a source file."""
    content = source.read_bytes() + jars().name.encode()
    classes = cache_dir() / "java" / f"{source.stem}-{hashlib.sha256(content).hexdigest()[:8]}"
    if classes.is_dir():
        return classes
    classes.parent.mkdir(parents=True, exist_ok=True)
    with (classes.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not classes.is_dir():
            _compile(source, classes)
    return classes


def _compile(source: Path, classes: Path) -> None:
    compiler = shutil.which("javac", path=str(Path(java()).parent)) or shutil.which("javac")
    if compiler is None:
        raise MissingRequirementError(
            f"A JDK is needed to compile {source.name}, and there is no `javac` on the PATH. "
            "On Debian: apt-get install default-jdk-headless"
        )
    # It gets its name when it is complete.
    with tempfile.TemporaryDirectory(prefix=source.stem, dir=classes.parent) as temporary:
        target = Path(temporary) / "classes"
        run = subprocess.run(
            [compiler, "-nowarn", "-cp", f"{jars()}/*", "-d", str(target), str(source)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMPILE_TIMEOUT_S,
            check=False,
        )
        if run.returncode != 0:
            raise RuntimeError(f"{source.name} can't be compiled:\n{run.stdout[-2000:]}")
        target.rename(classes)

"""The jars of Apache Kafka, downloaded once by Maven into a cache folder by version.

The download goes to a temporary folder beside its final place and is renamed when complete, under
a file lock, so an interrupted run or two runs at once never leave half a set of jars behind.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

KAFKA_VERSION = "4.3.1"
JAVA_VERSION_MIN = 17
DOWNLOAD_TIMEOUT_S = 900
# So many more jars are worth a line.
JARS_PER_LINE = 10

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent


class MissingRequirementError(RuntimeError):
    """Something outside this project is missing: Java, Maven, or the network."""


def cache_dir() -> Path:
    """The folder for downloads: $KLAMM_CACHE, or `.cache` in the repository."""
    return Path(os.environ.get("KLAMM_CACHE") or REPOSITORY / ".cache")


def java() -> str:
    """Path of a Java that is new enough.

    Raises:
        MissingRequirementError: when there is none.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = shutil.which("java", path=f"{home}/bin") if home else None
    found = candidate or shutil.which("java")
    if found is None:
        raise MissingRequirementError(
            f"A JDK of Java {JAVA_VERSION_MIN} or newer is needed for Apache Kafka, and there is "
            "no `java` on the PATH. On Debian: apt-get install default-jdk-headless"
        )
    shown = _shown_version(found)
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < JAVA_VERSION_MIN:
        seen = shown.strip().splitlines()[:1]
        raise MissingRequirementError(
            f"Java {JAVA_VERSION_MIN} or newer is needed to run Apache Kafka; {found} says: "
            f"{seen[0] if seen else 'nothing'}"
        )
    return found


@functools.cache
def _shown_version(program: str) -> str:
    """What a Java says of itself; asked once, because starting it takes a while."""
    shown = subprocess.run(
        [program, "-version"], capture_output=True, text=True, timeout=60, check=False
    )
    return shown.stderr + shown.stdout


def jars() -> Path:
    """The folder with the jars of Apache Kafka, downloading them when they are not there yet.

    Raises:
        MissingRequirementError: when Java, Maven or the network is missing.
    """
    libs = cache_dir() / "apache-kafka" / KAFKA_VERSION / f"libs-{_wanted()}"
    if libs.is_dir():
        return libs
    java()
    libs.parent.mkdir(parents=True, exist_ok=True)
    with (libs.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not libs.is_dir():
            _download(libs)
    return libs


def _wanted() -> str:
    """Changes with the list of jars, so that a folder of before is not taken for complete."""
    return hashlib.sha256((HERE / "pom.xml").read_bytes()).hexdigest()[:8]


def _download(libs: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingRequirementError(
            f"Maven is needed once to download Apache Kafka {KAFKA_VERSION}, and there is no `mvn` "
            "on the PATH. On Debian: apt-get install maven"
        )
    print(f"downloading Apache Kafka {KAFKA_VERSION} to {libs} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="libs-", dir=libs.parent) as temporary:
        target = Path(temporary) / "libs"
        command = [
            *(maven, "-B", "-f", str(HERE / "pom.xml"), f"-Dkafka.version={KAFKA_VERSION}"),
            *("dependency:copy-dependencies", "-DincludeScope=runtime"),
            f"-DoutputDirectory={target}",
        ]
        returncode, said = _run_maven(command)
        if returncode != 0 or not any(target.glob("kafka_*.jar")):
            ended = " in time" if returncode == -signal.SIGKILL else ""
            raise MissingRequirementError(
                f"Maven could not download Apache Kafka {KAFKA_VERSION}{ended}; is the network "
                f"there? It said:\n{said[-2000:]}"
            )
        count = len(list(target.glob("*.jar")))
        target.rename(libs)
    print(f"downloaded Apache Kafka {KAFKA_VERSION}: {count} jars", file=sys.stderr, flush=True)


def _run_maven(command: Sequence[str]) -> tuple[int, str]:
    """Return how Maven has ended and what it said; how far it is shows on standard error."""
    said: list[str] = []
    count = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as maven:
        assert maven.stdout is not None
        alarm = threading.Timer(DOWNLOAD_TIMEOUT_S, maven.kill)
        alarm.start()
        try:
            for line in maven.stdout:
                said.append(line)
                if "Downloaded from" in line and ".jar" in line:
                    count += 1
                    if count % JARS_PER_LINE == 0:
                        print(f"  {count} files …", file=sys.stderr, flush=True)
        finally:
            alarm.cancel()
    return maven.returncode, "".join(said)

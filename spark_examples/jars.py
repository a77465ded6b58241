"""What PySpark does not bring: Java, and the jars of Spark's Kafka connector.

The jars are downloaded once by Maven, into a temporary folder that is renamed when complete, so
that an interrupted or a second run never leaves half a set behind.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

JAVA_VERSION_MIN = 17
DOWNLOAD_TIMEOUT_S = 600

HERE = Path(__file__).resolve().parent


class MissingRequirementError(RuntimeError):
    """Something outside this project is missing: Java, Maven, or the network."""


def cache_dir() -> Path:
    """The folder for downloads: $KLAMM_CACHE, or `.cache` beside this package."""
    return Path(os.environ.get("KLAMM_CACHE") or HERE.parent / ".cache")


def require_java() -> None:
    """Say what is wrong with this machine's Java before Spark does so in twenty lines.

    Raises:
        MissingRequirementError: when there is no Java that is new enough.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    needed = f"Spark needs Java {JAVA_VERSION_MIN} or newer"
    remedy = "On Debian: apt-get install openjdk-17-jre-headless"
    if java is None:
        raise MissingRequirementError(f"{needed}, and there is none here. {remedy}")
    said = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=60, check=False
    )
    version = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if version is None or int(version[1]) < JAVA_VERSION_MIN:
        raise MissingRequirementError(f"{needed}; {java} is older. {remedy}")


def connector_jars() -> list[Path]:
    """The connector's jars, downloading them when they are not there yet.

    Raises:
        MissingRequirementError: when Maven or the network is missing.
    """
    folder = cache_dir() / "spark-kafka" / pyspark.__version__ / "jars"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _download(folder)
    return sorted(folder.glob("*.jar"))


def _download(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingRequirementError(
            "Maven is needed once to download Spark's Kafka connector, and there is no `mvn` on "
            "the PATH. On Debian: apt-get install maven. Or let Spark download it: "
            "--conf spark.jars.packages="
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        )
    print("downloading Spark's Kafka connector …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="jars-", dir=folder.parent) as temporary:
        target = Path(temporary) / "jars"
        run = subprocess.run(
            [
                *(maven, "-B", "-q", "-f", str(HERE / "pom.xml")),
                f"-Dspark.version={pyspark.__version__}",
                *("dependency:copy-dependencies", "-DincludeScope=runtime"),
                f"-DoutputDirectory={target}",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
            check=False,
        )
        if run.returncode != 0 or not any(target.glob("spark-sql-kafka-*.jar")):
            raise MissingRequirementError(
                f"Maven could not download Spark's Kafka connector:\n{run.stdout[-2000:]}"
            )
        target.rename(folder)

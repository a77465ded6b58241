"""What a machine without Java or Maven is told, by the programs themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PROGRAM_TIMEOUT_S = 100


def run(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program on a machine that has nothing but Python."""
    return subprocess.run(
        [sys.executable, "-m", "spark_examples.generate", "--kafka.bootstrap.servers", "none:1"],
        env={"PATH": str(tmp_path), "KLAMM_CACHE": str(tmp_path), **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize("version", [None, '"11.0.2"'])
def test_a_machine_without_java_gets_one_line(tmp_path: Path, version: str | None) -> None:
    if version is not None:
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version {version}'\n")
        java.chmod(0o755)
    done = run(tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Spark needs Java 17 or newer" in done.stderr


def test_a_machine_without_maven_is_told_of_both_ways(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"'\n")
    java.chmod(0o755)
    done = run(tmp_path)
    assert done.returncode == 2
    assert "apt-get install maven" in done.stderr
    assert "--conf spark.jars.packages=org.apache.spark:spark-sql-kafka" in done.stderr

"""The harness itself: Apache Kafka starts, its tools reach it, and its directory survives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.apache_kafka import MissingRequirementError, jars, small_kafka, tool


def test_a_killed_node_starts_again_on_its_directory_and_port(
    kafka_jars: Path, tmp_path: Path
) -> None:
    kafka = small_kafka(tmp_path / "data")
    with kafka:
        bootstrap = kafka.bootstrap
        created = tool(
            "kafka-topics", "--bootstrap-server", bootstrap, "--create", "--topic", "stays"
        )
        assert created.returncode == 0, created.stderr
        kafka.kill()
        kafka.start()
        assert kafka.bootstrap == bootstrap
        listed = tool("kafka-topics", "--bootstrap-server", bootstrap, "--list")
        assert listed.stdout.split() == ["stays"]


def test_a_missing_java_is_named_in_the_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KLAMM_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingRequirementError, match="JDK of Java 17 or newer is needed"):
        jars()


def fake(name: str, folder: Path, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def nothing_but_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and the only folder in which programs are found."""
    fake("java", tmp_path, "echo 'openjdk version \"17.0.1\"' >&2")
    monkeypatch.setenv("KLAMM_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def test_a_missing_maven_is_named_in_the_message(nothing_but_java: Path) -> None:
    with pytest.raises(MissingRequirementError, match="Maven is needed"):
        jars()


def test_a_missing_network_is_named_in_the_message(nothing_but_java: Path) -> None:
    fake("mvn", nothing_but_java, "echo 'Unknown host repo.example'; exit 1")
    with pytest.raises(MissingRequirementError, match="is the network there") as raised:
        jars()
    assert "Unknown host repo.example" in str(raised.value)


def test_a_network_that_does_not_answer_is_named_in_the_message(
    monkeypatch: pytest.MonkeyPatch, nothing_but_java: Path
) -> None:
    monkeypatch.setattr(sys.modules[jars.__module__], "DOWNLOAD_TIMEOUT_S", 0.5)
    fake("mvn", nothing_but_java, "exec /bin/sleep 60")
    with pytest.raises(MissingRequirementError, match="in time; is the network there"):
        jars()


def test_a_download_says_how_far_it_is(
    nothing_but_java: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(
        "mvn",
        nothing_but_java,
        """
        for at in 1 2 3 4 5 6 7 8 9 10 11; do echo "Downloaded from central: /$at.jar"; done
        for option; do case $option in -DoutputDirectory=*) folder=${option#*=};; esac; done
        /bin/mkdir "$folder" && : > "$folder/kafka_2.13-4.3.1.jar"
        """,
    )
    assert [path.name for path in jars().iterdir()] == ["kafka_2.13-4.3.1.jar"]
    first, *lines, last = capsys.readouterr().err.splitlines()
    assert first.startswith("downloading Apache Kafka")
    assert lines == ["  10 files …"]
    assert last.endswith("1 jars")
    # It is there: nothing more to say.
    jars()
    assert capsys.readouterr().err == ""


def test_the_command_ends_with_the_message(nothing_but_java: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compat_tests.apache_kafka"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Maven is needed")

"""The harness itself: Apache Kafka starts, its tools reach it, and its directory survives."""

from __future__ import annotations

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
    with pytest.raises(MissingRequirementError, match="Java 17 or newer is needed"):
        jars()


def test_a_missing_maven_is_named_in_the_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("KLAMM_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingRequirementError, match="Maven is needed"):
        jars()

"""The same requests make the same files, byte for byte, in klamm and in Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.disk.conftest import KafkaDirectories
from compat_tests.disk.workload import TOPIC_NAMES
from compat_tests.twin.batches import read_headers

SEGMENT_SUFFIXES = {".log", ".index", ".timeindex"}

# In "stamped" the broker writes its own time into each batch.
WITH_TIMES_OF_THE_PRODUCER = [topic for topic in TOPIC_NAMES if topic != "stamped"]


def contents(directory: Path, suffixes: set[str]) -> dict[str, bytes]:
    paths = sorted(path for path in directory.iterdir() if path.suffix in suffixes)
    return {path.name: path.read_bytes() for path in paths}


def assert_equal(klamm: dict[str, bytes], kafka: dict[str, bytes]) -> None:
    """Compare without printing megabytes."""
    assert list(klamm) == list(kafka)
    for name, data in klamm.items():
        expected = kafka[name]
        if data != expected:
            pairs = enumerate(zip(data, expected, strict=False))
            first = next((place for place, (one, other) in pairs if one != other), None)
            pytest.fail(
                f"{name}: {len(data)} bytes in klamm, {len(expected)} in Apache Kafka; "
                f"the first difference is at {first}"
            )


@pytest.mark.parametrize("topic", WITH_TIMES_OF_THE_PRODUCER)
def test_segments_and_indexes_are_equal(
    klamm_dir: Path, kafka_dirs: KafkaDirectories, topic: str
) -> None:
    mine = contents(klamm_dir / f"{topic}-0", SEGMENT_SUFFIXES)
    theirs = contents(kafka_dirs.stopped / f"{topic}-0", SEGMENT_SUFFIXES)
    assert len(mine) >= 2 * len(SEGMENT_SUFFIXES)
    assert_equal(mine, theirs)


def test_log_append_time_changes_the_same_fields(
    klamm_dir: Path, kafka_dirs: KafkaDirectories
) -> None:
    logs = [
        (directory / "stamped-0" / f"{0:020d}.log").read_bytes()
        for directory in (klamm_dir, kafka_dirs.stopped)
    ]
    mine, theirs = (_without_times(log) for log in logs)
    assert len(mine) == 40
    assert mine == theirs


def _without_times(log: bytes) -> list[bytes]:
    """The batches without their largest timestamp, which is the broker's, and their checksum."""
    batches = []
    for header in read_headers(log):
        position = header["position"]
        batch = log[position : position + 12 + header["batch_length"]]
        batches.append(batch[:17] + batch[21:35] + batch[43:])
    return batches


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_leader_epochs_are_equal(klamm_dir: Path, kafka_dirs: KafkaDirectories, topic: str) -> None:
    mine, theirs = (
        (directory / f"{topic}-0" / "leader-epoch-checkpoint").read_text()
        for directory in (klamm_dir, kafka_dirs.stopped)
    )
    assert mine == theirs


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_snapshots_are_taken_at_the_same_offsets(
    klamm_dir: Path, kafka_dirs: KafkaDirectories, topic: str
) -> None:
    mine, theirs = (
        list(contents(directory / f"{topic}-0", {".snapshot"}))
        for directory in (klamm_dir, kafka_dirs.stopped)
    )
    assert mine == theirs

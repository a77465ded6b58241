"""`klamm check` on directories that have lost something, or have too much of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from klamm.broker.__main__ import main
from klamm.broker.commands.check import EXIT_FAULTS
from klamm.broker.metadata.records import encode_metadata_record
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import RawClient, create_topic, produce_to
from klamm.wire.messages.stored.metadata import FeatureLevelRecord
from klamm.wire.records.record import build_batch

METADATA = "__cluster_metadata-0"


class Two:
    """Two directories with a partition in each."""

    def __init__(self, root: Path) -> None:
        self.a, self.b = root / "a", root / "b"
        self.broker = RunningBroker(self.a, {"log.dirs": f"{self.a},{self.b}"})

    def write(self) -> None:
        self.broker.start()
        with RawClient(self.broker) as client:
            create_topic(client, "topic", 2)
            for index in range(2):
                produce_to(client, "topic", partition=index)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    """Stopped cleanly."""
    two = Two(tmp_path)
    two.write()
    two.broker.stop()
    return two


class Check:
    """Runs the command, and tells what it has printed before its last line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *roots: Path, code: int) -> list[str]:
        assert main(["check", *map(str, roots)]) == code
        return self._capsys.readouterr().out.splitlines()[:-1]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    return Check(capsys)


def test_the_metadata_log_is_missing(two: Two, check: Check) -> None:
    assert check(two.a, two.b, code=0) == []
    shutil.rmtree(two.a / METADATA)
    first, *_ = check(two.a, two.b, code=EXIT_FAULTS)
    assert first == f"{two.a / METADATA}: is missing, and there are partitions"


def test_the_directory_of_the_metadata_log_is_not_named(two: Two, check: Check) -> None:
    """What else is wrong is found, and the rest is not blamed on the directory."""
    first, *_ = check(two.b, code=0)
    assert first.startswith(f"{two.b}: note: no metadata log; name the directory that has it")


def test_two_metadata_logs(two: Two, check: Check) -> None:
    shutil.copytree(two.a / METADATA, two.b / METADATA)
    assert check(two.a, two.b, code=EXIT_FAULTS) == [
        f"{two.b / METADATA}: another directory has one, too"
    ]


ELECTION = {"leaderId": 1, "leaderEpoch": 3, "votedId": -1, "data_version": 1}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("garbage", "not JSON"),
        ("", "not JSON"),
        ("[]", "there is no leaderEpoch"),
        ('{"leaderEpoch": "3"}', "there is no leaderEpoch"),
        (json.dumps({**ELECTION, "currentVoters": [{}]}), "currentVoters has one without"),
        (json.dumps({**ELECTION, "currentVoters": [{"voterId": 1}]}), None),
        (json.dumps(ELECTION), None),
    ],
)
def test_the_state_of_the_quorum(two: Two, check: Check, state: str, says: str | None) -> None:
    path = two.a / METADATA / "quorum-state"
    path.write_text(state)
    if says is None:
        assert check(two.a, two.b, code=0) == []
    else:
        (line,) = check(two.a, two.b, code=EXIT_FAULTS)
        assert line.startswith(f"{path}: byte 0: {says}")


def test_what_the_cluster_began_with(two: Two, check: Check) -> None:
    path = two.a / "bootstrap.checkpoint"
    feature = FeatureLevelRecord(name="metadata.version", feature_level=30)
    batch = build_batch([(None, encode_metadata_record(feature), (), 0)])
    path.write_bytes(batch)
    assert check(two.a, two.b, code=0) == []
    path.write_bytes(b"garbage")
    (line,) = check(two.a, two.b, code=EXIT_FAULTS)
    assert line.startswith(f"{path}: byte 0: the file ends after 7 bytes")
    path.write_bytes(build_batch([(None, b"garbage", (), 0)]))
    (line,) = check(two.a, two.b, code=EXIT_FAULTS)
    assert line.startswith(f"{path}: offset 0, byte 0: the record can't be understood")


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_synced_partition_is_missing(two: Two, check: Check, is_clean: bool) -> None:
    for root in (two.a, two.b):
        if not is_clean:
            (root / ".kafka_cleanshutdown").unlink()
    missing = two.b / "topic-1"
    shutil.rmtree(missing)
    first, *_ = check(two.a, two.b, code=EXIT_FAULTS)
    assert first == (
        f"{missing}: is missing, the metadata log has it, and"
        f" {two.b / 'recovery-point-offset-checkpoint'} has 1"
    )


def test_making_a_missing_partition_anew_is_told(
    two: Two, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(two.b / "topic-1")
    two.broker.start()
    two.broker.stop()
    assert (
        f"{two.b / 'topic-1'} is not there any more, and was synced up to offset 1" in caplog.text
    )
    caplog.clear()
    two.broker.start()
    with RawClient(two.broker) as client:
        create_topic(client, "new")
    two.broker.stop()
    assert "not there any more" not in caplog.text

"""`klamm check` on what klamm and Apache Kafka wrote: there is nothing to complain about.

The directories of Apache Kafka also prove the checker: what it calls a fault must not be Kafka's
ordinary way.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from compat_tests.apache_kafka import small_kafka
from compat_tests.disk.conftest import KafkaDirectories
from compat_tests.disk.rich_workload import PROPERTIES, work
from compat_tests.process.watched import run_klamm

EXIT_FAULTS = 1
STOP_TIMEOUT_S = 20
STATES = ["stopped", "killed"]


@pytest.fixture(scope="module")
def rich_dirs(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> KafkaDirectories:
    """What Apache Kafka leaves after transactions, compaction, deletion and groups."""
    folder = tmp_path_factory.mktemp("kafka-rich")
    stopped, killed = folder / "stopped", folder / "killed"
    with small_kafka(stopped, properties=PROPERTIES) as kafka:
        work(kafka.bootstrap, stopped)
        # Its cleaner goes on; held still, it leaves what a kill would leave.
        hold_between_checkpoints(kafka.pid, stopped)
        try:
            shutil.copytree(stopped, killed)
        finally:
            os.kill(kafka.pid, signal.SIGCONT)
    return KafkaDirectories(stopped, killed)


def hold_between_checkpoints(pid: int, directory: Path) -> None:
    """Hold Kafka still, but not while it replaces a checkpoint: the cleaner does so at any time,
    and what is half written then would be told of, by chance."""
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while True:
        os.kill(pid, signal.SIGSTOP)
        wait_until_stopped(pid)
        if not list(directory.glob("*.tmp")):
            return
        os.kill(pid, signal.SIGCONT)
        assert time.monotonic() < deadline, "a checkpoint is always being replaced"
        time.sleep(0.01)


def wait_until_stopped(pid: int) -> None:
    """Wait until each thread stands still: a signal is only on its way when it has been sent."""
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while any(
        stat.read_text().rpartition(")")[2].split()[0] != "T"
        for stat in Path(f"/proc/{pid}/task").glob("*/stat")
    ):
        assert time.monotonic() < deadline, f"process {pid} goes on"
        time.sleep(0.01)


def findings(directory: Path) -> list[str]:
    """The lines of a check that finds no fault."""
    done = run_klamm("check", str(directory))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-3000:]
    *found, summary = done.stdout.splitlines()
    assert summary.startswith("0 faults, ")
    return found


def test_a_directory_of_klamm(klamm_dir: Path) -> None:
    assert findings(klamm_dir) == []


@pytest.mark.parametrize("state", STATES)
def test_a_directory_of_apache_kafka(kafka_dirs: KafkaDirectories, state: str) -> None:
    assert findings(getattr(kafka_dirs, state)) == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("state", STATES)
def test_every_kind_of_file(rich_dirs: KafkaDirectories, state: str) -> None:
    directory: Path = getattr(rich_dirs, state)
    suffixes = {path.suffix for path in directory.rglob("*") if path.is_file()}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"} <= suffixes
    # What waits for its removal, and nothing else.
    for line in findings(directory):
        assert ": note: " in line
        assert any(what in line for what in ("left over from a deletion", "gone-0")), line


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("transactions-0/*.txnindex", "the log has producer"),
        ("transactions-0/*.snapshot", "the checksum is"),
        ("compacted-0/*.timeindex", "no batch of"),
        ("__consumer_offsets-?/*.log", "the checksum is"),
        ("__cluster_metadata-0/*.log", "the checksum is"),
        ("shortened-0/partition.metadata", "the metadata log has"),
    ],
)
def test_damage_would_be_noticed(
    rich_dirs: KafkaDirectories, tmp_path: Path, file: str, what: str
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(rich_dirs.stopped, directory)
    path = max(directory.glob(file), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    if path.suffix == ".metadata":
        # Another letter of the id; the last ones have bits that must be zero.
        data[-3] = ord("A") if data[-3] != ord("A") else ord("B")
    else:
        # The last byte of the last entry's last field, or of the last record.
        data[-1] ^= 1
    path.write_bytes(data)
    done = run_klamm("check", str(directory))
    assert done.returncode == EXIT_FAULTS
    named = [line for line in done.stdout.splitlines() if line.startswith(str(path))]
    assert any(what in line for line in named), done.stdout[-3000:]


@pytest.mark.timeout(240)
def test_every_file_can_be_dumped(rich_dirs: KafkaDirectories) -> None:
    files = [
        str(path)
        for path in rich_dirs.stopped.rglob("*")
        if path.is_file() and path.name != ".lock" and "-delete" not in str(path)
    ]
    done = run_klamm("dump", "--limit", "200", *files)
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        'TransactionLogKey={"transactional_id": "open"}',
        'OffsetCommitKey={"group": "group of classic", "topic": "shortened", "partition": 0}',
        'ConsumerGroupMetadataKey={"group_id": "group of consumer"}',
        'TopicRecord={"name": "transactions", ',
        "control=ABORT coordinator_epoch=0",
        "control=LEADER_CHANGE LeaderChangeMessage=",
    ):
        assert text in done.stdout, text

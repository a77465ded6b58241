"""`klamm check` and `klamm dump` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.clients.fixtures import create_topic
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Record
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.watched import CLEAN_SHUTDOWN_FILE, WatchedKlamm, run_klamm

EXIT_USAGE = 2
EXIT_BROKEN_PIPE = 141
COUNT = 1000
LOG = "00000000000000000000.log"


@pytest.fixture
def klamm(start_klamm: StartKlamm) -> WatchedKlamm:
    """A broker with records that fill some batches."""
    process = start_klamm()
    create_topic(process.bootstrap, "topic")
    records = [Record(f"value {number}".encode(), key=b"key") for number in range(COUNT)]
    ConfluentKafka().produce(process.bootstrap, "topic", records)
    return process


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def test_a_running_broker_is_left_alone(klamm: WatchedKlamm) -> None:
    done = run_klamm("check", str(klamm.data_dir))
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert done.stderr == f"klamm: {klamm.data_dir} is in use by a broker; stop it first\n"
    assert ConfluentKafka().positions(klamm.bootstrap, "topic").latest == COUNT


# What a check does first, and then waits until it is told to go on.
HOLD_LOCK = """
import sys
from klamm.log.check.source import SharedDirectoryLock
lock = SharedDirectoryLock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_check_keeps_brokers_out(klamm: WatchedKlamm) -> None:
    """A directory that changes while it is read would be full of faults."""
    klamm.stop()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(klamm.data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as checking:
        assert checking.stdin is not None
        assert checking.stdout is not None
        assert checking.stdout.readline() == "locked\n"
        assert klamm.check() == [], "two checks do not disturb each other"
        refused = run_klamm("serve", "--listen", klamm.bootstrap, "--data-dir", str(klamm.data_dir))
        assert refused.returncode == EXIT_USAGE
        assert "is in use by another broker" in refused.stderr
        checking.stdin.close()
    klamm.start()


def test_directories_after_a_kill_and_after_a_stop(klamm: WatchedKlamm) -> None:
    klamm.kill()
    assert klamm.check() == []
    klamm.start()
    klamm.stop()
    assert klamm.check() == []


def test_a_fault_is_named(klamm: WatchedKlamm) -> None:
    klamm.stop()
    log = klamm.data_dir / "topic-0" / LOG
    damage(log, log.stat().st_size - 1)
    (found,) = klamm.check()
    path, place, what = found.split(": ", 2)
    assert path == str(log)
    assert what.startswith("the checksum is 0x")
    offset, byte = (int(part.split()[1]) for part in place.split(", "))
    assert 0 <= offset < COUNT
    assert 0 <= byte < log.stat().st_size
    # A broker that has to look at the log comes to the same place.
    (klamm.data_dir / CLEAN_SHUTDOWN_FILE).unlink()
    klamm.start()
    (complaint,) = klamm.complaints()
    assert f"{log}: damaged batch at byte {byte} (offset {offset})" in complaint


def test_records_as_they_were_sent(klamm: WatchedKlamm) -> None:
    log = klamm.data_dir / "topic-0" / LOG
    # A broker that runs does not mind.
    done = run_klamm("dump", str(log))
    assert (done.returncode, done.stderr) == (0, "")
    records = [line.split() for line in done.stdout.splitlines() if line.startswith("  record ")]
    assert [record[1] for record in records] == [f"offset={number}" for number in range(COUNT)]
    values = [line.partition("value=")[2] for line in done.stdout.splitlines() if "value=" in line]
    assert [json.loads(value) for value in values] == [f"value {n}" for n in range(COUNT)]
    limited = run_klamm("dump", str(log), "--from-offset", str(COUNT - 1), "--limit", "2")
    assert limited.stdout.splitlines()[1].startswith(f"  record offset={COUNT - 1} ")


def test_every_file_of_a_directory(klamm: WatchedKlamm) -> None:
    klamm.stop()
    files = [str(path) for path in klamm.data_dir.rglob("*") if path.is_file()]
    assert len(files) > 10
    done = run_klamm("dump", *files)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.removeprefix("file ") for line in lines if line.startswith("file ")] == files
    assert any('TopicRecord={"name": "topic"' in line for line in lines)


def test_a_reader_that_has_seen_enough(klamm: WatchedKlamm) -> None:
    log = klamm.data_dir / "topic-0" / LOG
    command = f"{sys.executable} -m klamm.broker dump {log} {log} {log} {log}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("file ")
    assert done.returncode == EXIT_BROKEN_PIPE

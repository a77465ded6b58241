"""`klamm check` on what a broker leaves: silent, and never in its way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from klamm.broker.__main__ import EXIT_BROKEN_PIPE, EXIT_USAGE, main
from klamm.broker.commands.check import EXIT_FAULTS
from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic, delete_topic, produce_to
from klamm.log.fs import is_locked_here

METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The directory of a broker that was stopped: a topic, a deleted one, and one made anew."""
    directory = tmp_path / "data"
    with running_broker(directory) as broker, RawClient(broker) as client:
        for name in ("kept", "deleted", "anew"):
            create_topic(client, name, partitions=2)
            produce_to(client, name)
        delete_topic(client, "deleted")
        delete_topic(client, "anew")
        create_topic(client, "anew")
    return directory


def tree(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time of change and its bytes."""
    return {
        str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_nothing_is_wrong_and_nothing_changes(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(data_dir)
    assert main(["check", str(data_dir)]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("0 faults, 0 notes in 4 partitions (")
    assert output.out.count("\n") == 1
    assert output.err == ""
    assert tree(data_dir) == before


def test_a_directory_that_may_not_be_written_to(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = data_dir / ".lock"
    lock.unlink()
    data_dir.chmod(0o500)
    try:
        assert main(["check", str(data_dir)]) == 0
    finally:
        data_dir.chmod(0o700)
    assert not lock.exists()


def test_a_running_broker_keeps_its_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_broker(tmp_path / "data") as broker:
        assert main(["check", str(broker.data_dir)]) == EXIT_USAGE
        assert is_locked_here(f"{broker.data_dir}/.lock")
    assert (
        capsys.readouterr().err
        == f"klamm: {broker.data_dir} is in use by a broker; stop it first\n"
    )


def test_faults_are_named_and_counted(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = data_dir / "kept-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    assert main(["check", f"{data_dir}/"]) == EXIT_FAULTS
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{log}: offset 0, byte 0: the checksum is 0x")
    assert last.startswith("1 faults, 0 notes in 4 partitions (")


def test_metadata_that_can_not_be_replayed(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The topic's own record is cut out; what follows hangs in the air."""
    log = data_dir / METADATA_LOG
    (data_dir / ".kafka_cleanshutdown").unlink()
    checkpoint = data_dir / "recovery-point-offset-checkpoint"
    data = log.read_bytes()
    log.write_bytes(data[:-10])
    assert main(["check", str(data_dir)]) == EXIT_FAULTS
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith(f"{log}: offset ") and "the file ends after" in line for line in lines
    )
    # Nobody is called a stray by half of the metadata.
    assert not any("no such partition" in line for line in lines)
    # Above the recovery point it would be what a crash leaves.
    checkpoint.write_bytes(b"0\n0\n")
    assert main(["check", str(data_dir)]) == 0
    assert "note: recovery will cut here" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["nothing", "empty", "file"])
def test_what_is_no_data_directory(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / what
    if what == "empty":
        path.mkdir()
    if what == "file":
        path.touch()
    assert main(["check", str(path)]) == EXIT_USAGE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"klamm: {path}")
    assert output.err.count("\n") == 1
    if what == "empty":
        assert output.err.endswith("name what a broker has as its --data-dir or in log.dirs\n")


def test_progress_of_a_long_check(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(0, 1_000_000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    assert main(["check", str(data_dir)]) == 0
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == "checked 0 of 0 MiB"
    assert "checked" not in output.out


def test_it_opens_for_reading_alone(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def watch(path: str, flags: int, *rest: int, **more: int) -> int:
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return opened(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", watch)
    assert main(["check", str(data_dir)]) == 0


def test_a_reader_that_leaves_early(data_dir: Path) -> None:
    """More findings than a pipe holds, and nobody who reads them."""
    for number in range(2000):
        (data_dir / f"odd-{number:0200d}").touch()
    command = [sys.executable, "-m", "klamm.broker", "check", str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == EXIT_BROKEN_PIPE

"""Directories that `klamm serve` does not start on: one line, exit code 2, and all is as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.clients.kcat import kcat
from compat_tests.process.test_serve import refusal, with_directories
from compat_tests.process.watched import WatchedKlamm

METADATA = "__cluster_metadata-0"


def content(*roots: Path) -> dict[Path, bytes]:
    paths = (path for root in roots for path in root.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in paths}


def flip_in_the_metadata_log(root: Path) -> None:
    path = root / METADATA / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def garbage(name: str) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        (root / name).write_text("garbage")

    return harm


@pytest.fixture
def klamm(tmp_path: Path) -> WatchedKlamm:
    """Two directories with a record in each, stopped cleanly."""
    roots = [tmp_path / name for name in "ab"]
    klamm = WatchedKlamm(roots[0], properties={"log.dirs": ",".join(map(str, roots))})
    with klamm:
        create_topic(klamm.bootstrap, "topic", 2)
        for partition in range(2):
            kcat("-P", "-b", klamm.bootstrap, "-t", "topic", "-p", str(partition), stdin=b"one\n")
    return klamm


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (flip_in_the_metadata_log, f"{METADATA}/{0:020d}.log: damaged batch at byte "),
        (garbage(f"{METADATA}/quorum-state"), "not the state of a quorum"),
        (garbage("recovery-point-offset-checkpoint"), "recovery-point-offset-checkpoint: "),
        (garbage("meta.properties"), "meta.properties: "),
        (lambda root: (root / "meta.properties").unlink(), "put that file back"),
        (lambda root: shutil.rmtree(root / METADATA), "bring the log back"),
    ],
)
def test_damage(klamm: WatchedKlamm, harm: Callable[[Path], None], says: str) -> None:
    a, b = klamm.data_dir, klamm.data_dir.parent / "b"
    harm(a)
    before = content(a, b)
    assert says in refusal(*with_directories(a, b))
    assert content(a, b) == before


def test_directories_in_another_order(klamm: WatchedKlamm) -> None:
    a, b = klamm.data_dir, klamm.data_dir.parent / "b"
    before = content(a, b)
    assert f"set metadata.log.dir={a}" in refusal(*with_directories(b, a))
    assert content(a, b) == before
    with klamm:
        for partition in range(2):
            assert raw.list_offset(klamm.bootstrap, "topic", partition, -1)[1] == 1

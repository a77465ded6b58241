"""Where the metadata log is, and that nothing is hidden when it is looked for elsewhere.

A broker that finds no metadata takes its cluster for new. With partitions beside it that would put
all of them aside, so a start that looks in the wrong place is refused, and every directory is left
as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import RawClient, create_topic, fetch_from, produce_to
from klamm.log.errors import CorruptFileError, CorruptLogError, InconsistentDirectoryError

METADATA = "__cluster_metadata-0"


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return tmp_path / "a"


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return tmp_path / "b"


@pytest.fixture
def meta(tmp_path: Path) -> Path:
    return tmp_path / "meta"


def broker_over(*roots: Path, metadata: Path | None = None) -> RunningBroker:
    properties = {"log.dirs": ",".join(map(str, roots))}
    if metadata is not None:
        properties["metadata.log.dir"] = str(metadata)
    return RunningBroker(roots[0], properties)


def write_and_stop(broker: RunningBroker) -> None:
    broker.start()
    with RawClient(broker) as client:
        create_topic(client, "topic", 2)
        for index in range(2):
            produce_to(client, "topic", partition=index)
    broker.stop()


def assert_served(broker: RunningBroker) -> None:
    broker.start()
    with RawClient(broker) as client:
        for index in range(2):
            assert fetch_from(client, "topic", partitions=(index,)).high_watermark == 1
    broker.stop()


def content(*roots: Path) -> dict[Path, bytes]:
    paths = (path for root in roots for path in root.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in paths}


@pytest.fixture
def written(a: Path, b: Path) -> Iterator[RunningBroker]:
    """A broker with a partition in each of two directories, stopped cleanly."""
    broker = broker_over(a, b)
    write_and_stop(broker)
    yield broker
    # Nothing was hidden by what a test has tried.
    broker.stop()


def refused(broker: RunningBroker, *roots: Path) -> str:
    """Why a start is refused; the directories are as they were."""
    before = content(*roots)
    with pytest.raises(InconsistentDirectoryError) as error:
        broker.start()
    assert content(*roots) == before
    return str(error.value)


def test_directories_in_another_order(written: RunningBroker, a: Path, b: Path) -> None:
    line = refused(broker_over(b, a), a, b)
    assert line == (
        f"the metadata log is in {a}, and was looked for in {b};"
        f" set metadata.log.dir={a}, or name {a} first in log.dirs"
    )
    assert_served(written)
    assert_served(broker_over(b, a, metadata=a))


def test_the_metadata_log_is_where_nobody_looks(a: Path, b: Path, meta: Path) -> None:
    broker = broker_over(a, b, metadata=meta)
    write_and_stop(broker)
    line = refused(broker_over(a, b), a, b, meta)
    assert line == (
        f"{a} has no metadata log, but {a} has partitions;"
        " name the directory with the metadata log as metadata.log.dir, or bring the log back"
    )
    assert_served(broker)


def test_the_metadata_log_is_lost(written: RunningBroker, a: Path, b: Path, meta: Path) -> None:
    (a / METADATA).rename(meta)
    assert f"{a} has no metadata log" in refused(written, a, b)
    # Not even a directory that was made for it anew, nor an empty log, is taken for one.
    (a / METADATA).mkdir()
    assert f"{a} has no metadata log" in refused(written, a, b)
    (a / METADATA / f"{0:020d}.log").write_bytes(b"")
    assert f"{a} has no metadata log" in refused(written, a, b)
    shutil.rmtree(a / METADATA)
    meta.rename(a / METADATA)
    assert_served(written)


def test_two_metadata_logs(written: RunningBroker, a: Path, b: Path) -> None:
    shutil.copytree(a / METADATA, b / METADATA)
    line = refused(written, a, b)
    assert line == f"{a} and {b} both have a metadata log; move the one away that is not right"
    shutil.rmtree(b / METADATA)
    assert_served(written)


def test_only_the_other_directory_is_named(written: RunningBroker, a: Path, b: Path) -> None:
    assert f"{b} has no metadata log, but {b} has partitions" in refused(broker_over(b), a, b)
    assert_served(written)


def test_a_directory_without_partitions_begins_anew(a: Path, b: Path) -> None:
    """A first start that was cut short has named the directory, and written no metadata yet."""
    with running_broker(a):
        pass
    shutil.rmtree(a / METADATA)
    write_and_stop(broker_over(a, b))


def test_a_new_disk_is_taken(written: RunningBroker, a: Path, b: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / "lost+found").mkdir()
    # What somebody keeps there is no partition, whatever it is called.
    (new / "backup-2024").mkdir()
    (new / "backup-2024" / "notes.txt").write_text("mine")
    assert_served(broker_over(a, b, new))
    assert (new / "meta.properties").exists()


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_lost_meta_properties(written: RunningBroker, a: Path, b: Path, name: str) -> None:
    """Made anew it would have another directory id, and all its partitions would be offline."""
    file = a.parent / name / "meta.properties"
    kept = file.read_bytes()
    file.unlink()
    line = refused(written, a, b)
    assert line.startswith(f"{a.parent / name} has partitions, but no meta.properties; ")
    assert not file.exists()
    file.write_bytes(kept)
    assert_served(written)


def test_only_the_metadata_is_in_a_nameless_directory(a: Path, meta: Path) -> None:
    broker = broker_over(a, metadata=meta)
    write_and_stop(broker)
    (meta / "meta.properties").unlink()
    (a / "meta.properties").unlink()
    assert f"{meta} has partitions, but no meta.properties" in refused(broker, a, meta)


def test_an_unknown_directory_id(
    written: RunningBroker, b: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = b / "meta.properties"
    lines = file.read_text().splitlines()
    (old,) = [line for line in lines if line.startswith("directory.id=")]
    file.write_text("\n".join(lines).replace(old, "directory.id=AAAAAAAAAAAAAAAAAAAAew") + "\n")
    written.start()
    written.stop()
    directory_id = old.partition("=")[2]
    assert f"none of log.dirs has the directory id {directory_id} of topic-" in caplog.text


# --- refused for other reasons --------------------------------------------------------------------


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def batch_starts(path: Path) -> list[int]:
    data = path.read_bytes()
    starts, position = [], 0
    while position < len(data):
        starts.append(position)
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return starts


def test_a_damaged_metadata_log_after_a_clean_stop(
    written: RunningBroker, a: Path, b: Path
) -> None:
    """The place is named, and the next start still knows that the directories were clean."""
    path = a / METADATA / f"{0:020d}.log"
    starts = batch_starts(path)
    flip(path, starts[2] + 70)
    before = content(a, b)
    with pytest.raises(CorruptLogError, match=f"byte {starts[2]} ") as error:
        written.start()
    assert error.value.file == str(path)
    assert content(a, b) == before
    flip(path, starts[2] + 70)
    assert_served(written)


def test_a_damaged_metadata_log_after_a_kill(written: RunningBroker, a: Path) -> None:
    written.start()
    written.kill()
    path = a / METADATA / f"{0:020d}.log"
    starts = batch_starts(path)
    flip(path, starts[1] + 70)
    with pytest.raises(CorruptLogError, match=f"byte {starts[1]} "):
        written.start()
    flip(path, starts[1] + 70)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{METADATA}/quorum-state", "nonsense"),
        ("recovery-point-offset-checkpoint", "nonsense"),
    ],
)
def test_a_small_file_that_can_not_be_read(
    written: RunningBroker, a: Path, b: Path, name: str, text: str
) -> None:
    (a / name).write_text(text)
    before = content(a, b)
    with pytest.raises(CorruptFileError):
        written.start()
    assert content(a, b) == before


def test_another_directory_is_of_another_node(written: RunningBroker, a: Path, b: Path) -> None:
    """The directory of the metadata log comes first, and is left alone all the same."""
    file = b / "meta.properties"
    kept = file.read_text()
    file.write_text(kept.replace("node.id=1", "node.id=2"))
    assert f"{b} belongs to node 2" in refused(written, a, b)
    file.write_text(kept)
    assert_served(written)

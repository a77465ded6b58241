"""A full disk: writes are refused with an error that clients retry, and reads go on.

A small file system is really filled, where this process may mount one. Everywhere, the calls of
the operating system are made to behave like those of a full disk.
"""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.history.recorder import History
from compat_tests.history.rules import violations
from compat_tests.process.clients import IDEMPOTENT, producing, read_all
from compat_tests.process.faults import FaultyKlamm, with_full_disk
from compat_tests.process.watched import WatchedKlamm, until
from compat_tests.twin.batches import R, batch

CLIENT_TIMEOUT_S = 30.0
KAFKA_STORAGE_ERROR = 56
DISK_BYTES = 8 * 1024 * 1024
# Some may still fit into the last page of the file that lists them.
TOPICS = 40
# Half a segment, in a topic whose deleted segments go at once.
HALF_SEGMENT = bytes(512 * 1024)
SMALL_SEGMENTS = {"segment.bytes": str(1024 * 1024), "file.delete.delay.ms": "0"}

# A name space of its own, so that the mount goes away with the process, however that ends.
_NAME_SPACE = ("unshare", "--user", "--map-root-user", "--mount")
_MOUNT = f'mount -t tmpfs -o size={DISK_BYTES} tmpfs "$0" && exec "$@"'


@functools.cache
def why_no_mount() -> str | None:
    """Whether containers or the system's policy forbid it is only known by trying."""
    try:
        done = subprocess.run(
            [*_NAME_SPACE, "sh", "-c", _MOUNT, "/mnt", "true"],
            capture_output=True,
            check=False,
            text=True,
        )
    except FileNotFoundError:
        return "there is no `unshare`"
    return None if done.returncode == 0 else done.stderr.strip() or "`unshare` fails"


def require_mount() -> None:
    reason = why_no_mount()
    if reason is not None:
        pytest.skip(f"a small disk cannot be mounted in a name space of its own: {reason}")


class KlammOnSmallDisk(WatchedKlamm):
    """klamm with its data on a file system of 8 MiB."""

    def command(self) -> list[str]:
        folder = self.data_dir.parent
        return [*_NAME_SPACE, "sh", "-c", _MOUNT, str(folder), *super().command()]

    def switch_on(self) -> None:
        """Fill it to the last byte."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (64 * 1024, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def switch_off(self) -> None:
        self._filler.unlink()

    @property
    def _filler(self) -> Path:
        return Path(f"/proc/{self.pid}/root{self.data_dir.parent}") / "filler"


DISKS: dict[str, Callable[[Path], FaultyKlamm | KlammOnSmallDisk]] = {
    "simulated": with_full_disk,
    "real": KlammOnSmallDisk,
}


@pytest.fixture(params=DISKS)
def klamm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WatchedKlamm]:
    disk: str = request.param
    if disk == "real":
        require_mount()
    (tmp_path / "disk").mkdir()
    process = DISKS[disk](tmp_path / "disk" / "data")
    process.start()
    yield process
    process.kill()


def test_refused_until_there_is_room(klamm: FaultyKlamm | KlammOnSmallDisk) -> None:
    bootstrap = klamm.bootstrap
    create_topic(bootstrap, "topic")
    assert raw.produce(bootstrap, "topic", batch(R(b"0"))) == (0, 0)
    for times in range(1, 4):
        klamm.switch_on()
        for acks in (1, -1, 1, -1):
            # Larger than what may be left of a page that is in use already.
            error, _ = raw.produce(bootstrap, "topic", batch(R(bytes(64 * 1024))), acks=acks)
            assert error == KAFKA_STORAGE_ERROR
            expected = [(number, str(number)) for number in range(times)]
            assert read_all(bootstrap, "topic") == expected
        klamm.switch_off()
        assert raw.produce(bootstrap, "topic", batch(R(str(times).encode()))) == (0, times)
    assert not [line for line in klamm.complaints() if line.startswith("halting")]


def test_a_producer_waits_for_room(klamm: FaultyKlamm | KlammOnSmallDisk) -> None:
    """Its client tries again by itself: nothing is lost, doubled or out of order."""
    history = History(idempotent=True)
    create_topic(klamm.bootstrap, "topic")
    with producing(klamm.bootstrap, "topic", history, IDEMPOTENT):
        for _ in range(3):
            history.wait_for_more("ok", 50)
            klamm.switch_on()
            # What is sent now can't be stored, once the last page of the disk is full.
            history.wait_for_more("invoke", 200)
            klamm.switch_off()
        history.wait_for_more("ok", 50)
    history.add_log(read_all(klamm.bootstrap, "topic"))
    assert violations(history.events()) == []
    assert history.count("ok") == history.count("invoke")


@pytest.fixture
def full_klamm(klamm: FaultyKlamm | KlammOnSmallDisk) -> FaultyKlamm | KlammOnSmallDisk:
    """With a topic of several segments, and no room for anything in another."""
    create_topic(klamm.bootstrap, "large", config=SMALL_SEGMENTS)
    create_topic(klamm.bootstrap, "other")
    for number in range(6):
        assert raw.produce(klamm.bootstrap, "large", batch(R(HALF_SEGMENT))) == (0, number)
    klamm.switch_on()
    assert not is_stored(klamm)
    return klamm


def is_stored(klamm: WatchedKlamm) -> bool:
    error, _ = raw.produce(klamm.bootstrap, "other", batch(R(bytes(64 * 1024))))
    assert error in (0, KAFKA_STORAGE_ERROR)
    return error == 0


def test_deleting_a_topic_makes_room(full_klamm: FaultyKlamm | KlammOnSmallDisk) -> None:
    admin = AdminClient({"bootstrap.servers": full_klamm.bootstrap})
    admin.delete_topics(["large"])["large"].result(timeout=CLIENT_TIMEOUT_S)
    until(lambda: is_stored(full_klamm), "room was made by deleting a topic")
    assert [offset for offset, _ in read_all(full_klamm.bootstrap, "other")] == [0]


def test_deleting_records_makes_room(full_klamm: FaultyKlamm | KlammOnSmallDisk) -> None:
    admin = AdminClient({"bootstrap.servers": full_klamm.bootstrap})
    records = TopicPartition("large", 0, 5)
    deleted = admin.delete_records([records])[records].result(timeout=CLIENT_TIMEOUT_S)
    assert deleted.low_watermark == 5
    until(lambda: is_stored(full_klamm), "room was made by deleting records")
    assert [offset for offset, _ in read_all(full_klamm.bootstrap, "other")] == [0]


def test_topics_are_made_when_there_is_room_again(klamm: FaultyKlamm | KlammOnSmallDisk) -> None:
    create_topic(klamm.bootstrap, "before")
    klamm.switch_on()
    assert raw.is_alive(klamm.bootstrap)
    refusals: list[int] = []
    for number in range(TOPICS):
        try:
            create_topic(klamm.bootstrap, f"while-{number}")
        except KafkaException as error:
            refusals.append(error.args[0].code())
    assert refusals
    assert set(refusals) == {KAFKA_STORAGE_ERROR}
    klamm.switch_off()
    create_topic(klamm.bootstrap, "after")
    assert raw.produce(klamm.bootstrap, "after", batch()) == (0, 0)
    assert raw.produce(klamm.bootstrap, "before", batch()) == (0, 0)
    klamm.stop()

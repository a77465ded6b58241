"""A fetch of what is not in memory, or not verified yet, does not hold up the others."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from klamm.broker import connection
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    RawClient,
    batch,
    create_topic,
    fetch,
    fetch_from,
    produce_to,
)
from klamm.log.config import LogConfig
from klamm.log.fs import OsFile, OsFileSystem, open_flags
from klamm.log.manager import LogManager
from klamm.log.readiness import TAIL_BYTES
from klamm.wire.errors import ErrorCode

NOW_MS = 1_700_000_000_000
LARGE = batch(b"x" * 500_000)


class ColdFile(OsFile):
    """A file of which nothing is in memory until it is loaded."""

    __slots__ = ("_fs",)

    def __init__(self, path: str, fd: int, fs: ColdFileSystem) -> None:
        super().__init__(path, fd)
        self._fs = fs

    def is_cached(self, position: int, size: int) -> bool:
        return self.path not in self._fs.cold

    def load(self, position: int, size: int) -> None:
        super().load(position, size)
        self._fs.loaded_in.append(threading.current_thread().name)
        if self._fs.fails:
            raise OSError("on purpose")
        self._fs.cold.discard(self.path)


class ColdFileSystem(OsFileSystem):
    """A disk that is slow whenever a test says so.

    Attributes:
        cold: paths of files that are not in memory.
        loaded_in: the threads that have loaded something.
        fails: whether loading fails.
    """

    def __init__(self) -> None:
        self.cold: set[str] = set()
        self.loaded_in: list[str] = []
        self.fails = False

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> ColdFile:
        flags = open_flags(create=create, read_only=read_only)
        return ColdFile(path, os.open(path, flags, 0o644), self)


def segment_of(broker: RunningBroker, topic: str) -> str:
    return f"{broker.data_dir}/{topic}-0/00000000000000000000.log"


@pytest.mark.interpreted
def test_what_is_not_in_memory_is_loaded_in_a_thread_before_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = ColdFileSystem()
    sent_cold: list[bool] = []

    def sendfile(out: int, file: int, position: int, size: int) -> int:
        sent_cold.append(bool(fs.cold))
        return os.sendfile(out, file, position, size)

    monkeypatch.setattr(connection, "os", Patched(sendfile))
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        for _ in range(4):
            produce_to(client, "topic", LARGE)
        fs.cold.add(segment_of(broker, "topic"))
        assert len(fetch_from(client, "topic").records) == 4 * len(LARGE)
        assert sent_cold
        assert not any(sent_cold)
        (thread,) = fs.loaded_in
        assert thread != f"klamm-{broker.port}"


class Patched:
    """The module `os` with another sendfile."""

    def __init__(self, sendfile: Any) -> None:
        self.sendfile = sendfile

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def test_a_consumer_at_the_end_of_the_log_loads_nothing(tmp_path: Path) -> None:
    fs = ColdFileSystem()
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        for offset in range(4):
            produce_to(client, "topic", LARGE)
            fs.cold.add(segment_of(broker, "topic"))
            assert len(fetch_from(client, "topic", offset).records) == len(LARGE)
        assert fs.loaded_in == []
    assert len(LARGE) < TAIL_BYTES


def test_a_disk_that_fails_is_told_to_the_consumer(tmp_path: Path) -> None:
    fs = ColdFileSystem()
    with running_broker(tmp_path / "data", fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        create_topic(client, "other")
        for _ in range(4):
            produce_to(client, "topic", LARGE)
            produce_to(client, "other", LARGE)
        fs.cold.add(segment_of(broker, "topic"))
        fs.fails = True
        assert fetch_from(client, "topic").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(fetch_from(client, "other").records) == 4 * len(LARGE)


def test_batches_of_an_earlier_run_are_verified_a_few_at_a_time(tmp_path: Path) -> None:
    """The assertion is in conftest.py, as for test_short_steps.py."""
    small = batch()
    count = 50_000
    with running_broker(tmp_path / "data") as broker, RawClient(broker) as client:
        topic_id = create_topic(client, "topic")
    logs = LogManager.open(OsFileSystem(), str(tmp_path / "data"), node_id=1)
    log = logs.open_partition("topic", 0, topic_id, LogConfig(), NOW_MS)
    for _ in range(count):
        log.append(small, leader_epoch=0, now_ms=NOW_MS)
    logs.close()
    with running_broker(tmp_path / "data") as broker, RawClient(broker) as client:
        client.send(fetch("topic"), version=FETCH_VERSION)
        (result,) = client.receive()[1].responses[0].partitions
        assert len(result.records) == count * len(small)

"""A clean stop does not sync one partition after another."""

from __future__ import annotations

import threading
from pathlib import Path

from klamm.broker.testing import running_broker
from klamm.broker.tests.raw_client import ACKS_LEADER, RawClient, create_topic, produce_to
from klamm.broker.tests.watched_fs import WatchedFileSystem

COUNT = 4


def test_partitions_are_synced_at_the_same_time(tmp_path: Path) -> None:
    fs = WatchedFileSystem()
    all_at_once = threading.Barrier(COUNT)
    with running_broker(tmp_path / "data", fs=fs) as broker:
        with RawClient(broker) as client:
            create_topic(client, "topic", COUNT)
            for partition in range(COUNT):
                produce_to(client, "topic", partition=partition, acks=ACKS_LEADER)

        def wait_for_the_others(path: str) -> None:
            if "/topic-" in path and path.endswith(".log"):
                all_at_once.wait(20)

        fs._before_sync = wait_for_the_others
        broker.stop()
    assert not all_at_once.broken
    assert fs.syncs_of("topic", 0) == 1

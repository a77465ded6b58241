"""What the archive keeps of a topic that has transactions, and partitions of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from compat_tests.clients.fixtures import create_topic
from compat_tests.spark.connector import Connector
from compat_tests.spark.shop import ARCHIVE, Shop
from compat_tests.spark.transactions import write
from spark_examples.topics import partition_count, read_topic


def test_what_is_archived(
    kafka: Connector,
    transactional: Producer,
    topic_names: Iterator[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A transaction is aborted, the last partition is empty, another comes, the topic goes."""
    shop = Shop(kafka.bootstrap, next(topic_names), tmp_path)
    topic, admin = shop.topic("orders"), AdminClient({"bootstrap.servers": shop.bootstrap})
    create_topic(shop.bootstrap, topic, 2)
    for value, end in (
        ("good", transactional.commit_transaction),
        ("aborted", transactional.abort_transaction),
        ("good, too", transactional.commit_transaction),
    ):
        write(transactional, topic, value)
        end(60)

    shop.run_and_check(ARCHIVE)
    restored = ("--restore", topic, "--into", shop.topic("restored"))
    shop.run(ARCHIVE, *restored)
    shop.check(ARCHIVE, *restored)
    values = [record.value for record in read_topic(shop.bootstrap, shop.topic("restored"))]
    assert values == [b"good", b"good, too"]
    assert partition_count(shop.bootstrap, shop.topic("restored")) == 2

    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    kafka.produce(topic, ["later"], 2)
    shop.check(ARCHIVE)
    shop.check_fails(ARCHIVE, *restored)
    assert "3 and 2 partitions" in capsys.readouterr().err

    everything = Shop(shop.bootstrap, shop.prefix, tmp_path / "everything")
    everything.run(ARCHIVE, "--kafka.isolation.level", "read_uncommitted")
    everything.check_fails(ARCHIVE)
    assert "offsets that the log does not show, e.g. [(0, 2)]" in capsys.readouterr().err

    admin.delete_topics([topic])[topic].result(30)
    shop.run(ARCHIVE, "--restore", topic, "--into", shop.topic("last-seen"))
    assert partition_count(shop.bootstrap, shop.topic("last-seen")) == 2
    shop.run_fails(ARCHIVE, "--restore", "other", "--into", shop.topic("none"))
    assert "archived has no record of other" in capsys.readouterr().err

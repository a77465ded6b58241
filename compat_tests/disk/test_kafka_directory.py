"""klamm takes over a directory that Apache Kafka wrote, and goes on with every kind of batch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.clients import raw
from compat_tests.clients.librdkafka import ConfluentKafka
from compat_tests.clients.model import Record
from compat_tests.disk.conftest import KafkaDirectories
from compat_tests.disk.dump import dump_log
from compat_tests.disk.workload import TOPIC_NAMES, Written
from compat_tests.klamm_process import KlammProcess
from compat_tests.twin.batches import R, batch, read_headers


@pytest.fixture(scope="module", params=["stopped", "killed"])
def klamm(
    request: pytest.FixtureRequest,
    kafka_dirs: KafkaDirectories,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KlammProcess]:
    """klamm on a copy of the directory of a stopped or a killed Apache Kafka."""
    process = KlammProcess(tmp_path_factory.mktemp("klamm-on-kafka") / "data")
    shutil.copytree(getattr(kafka_dirs, request.param), process.data_dir)
    with process:
        yield process


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_every_record_is_served(
    klamm: KlammProcess, topics: dict[str, Written], topic: str
) -> None:
    sent = topics[topic].records
    read = ConfluentKafka().consume(klamm.bootstrap, topic, len(sent))
    assert [one.offset for one in read] == list(range(len(sent)))
    assert [(one.key, one.value) for one in read] == [(one.key, one.value) for one in sent]
    assert [one.headers for one in read] == [
        tuple(((name or b"").decode(), value) for name, value in one.headers) for one in sent
    ]


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_the_served_bytes_are_those_on_disk(
    klamm: KlammProcess, kafka_dirs: KafkaDirectories, topic: str
) -> None:
    directory = kafka_dirs.stopped / f"{topic}-0"
    stored = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    served = b""
    end = raw.list_offset(klamm.bootstrap, topic, 0, -1)[1]
    while len(served) < len(stored):
        headers = read_headers(served)
        last = headers[-1] if headers else {"base_offset": -1, "last_offset_delta": 0}
        position = last["base_offset"] + last["last_offset_delta"] + 1
        assert position < end
        served += raw.fetch_records(klamm.bootstrap, topic, 0, position)
    assert served[: len(stored)] == stored


def test_every_time_is_found(klamm: KlammProcess, topics: dict[str, Written]) -> None:
    """The first record not older than a time, as the records themselves say."""
    headers = [read_headers(encoded)[0] for encoded in topics["plain"].encoded]
    times = [
        header["base_timestamp"] + record.timestamp_delta
        for header, records in zip(headers, topics["plain"].batches, strict=True)
        for record in records
    ]
    asked = [min(times), *times[:: len(times) // 20], max(times), max(times) + 1]
    expected = [
        next((offset for offset, time in enumerate(times) if time >= wanted), None)
        for wanted in asked
    ]
    found = ConfluentKafka().positions(klamm.bootstrap, "plain", asked)
    assert found.for_times == expected


def test_the_last_batch_of_a_producer_is_known(
    klamm: KlammProcess, topics: dict[str, Written]
) -> None:
    *_, last = topics["sequenced"].encoded
    end = raw.list_offset(klamm.bootstrap, "sequenced", 0, -1)[1]
    size = len(topics["sequenced"].batches[-1])
    assert raw.produce(klamm.bootstrap, "sequenced", last) == (0, end - size)
    assert raw.list_offset(klamm.bootstrap, "sequenced", 0, -1) == (0, end)


def test_a_producer_goes_on_with_its_next_sequence(
    klamm: KlammProcess, topics: dict[str, Written]
) -> None:
    header = read_headers(topics["sequenced"].encoded[-2])[0]
    end = raw.list_offset(klamm.bootstrap, "sequenced", 0, -1)[1]
    following = batch(
        R(b"on klamm"),
        producer_id=header["producer_id"],
        producer_epoch=header["producer_epoch"],
        base_sequence=header["base_sequence"] + header["record_count"],
        base_timestamp=header["max_timestamp"],
    )
    assert raw.produce(klamm.bootstrap, "sequenced", following) == (0, end)


def test_both_parts_of_the_log_are_one(
    klamm: KlammProcess, topics: dict[str, Written], kafka_jars: Path
) -> None:
    """What klamm adds follows on what Apache Kafka wrote, also after a restart."""
    client = ConfluentKafka()
    count = len(topics["packed"].records)
    more = [Record(f"on klamm {number}".encode() * 100) for number in range(2000)]
    client.produce(klamm.bootstrap, "packed", more)
    klamm.restart()
    read = client.consume(klamm.bootstrap, "packed", len(more), start=count)
    assert [one.value for one in read] == [one.value for one in more]
    assert client.positions(klamm.bootstrap, "packed").latest == count + len(more)
    klamm.stop()
    try:
        directory = klamm.data_dir / "packed-0"
        kinds = (".log", ".index", ".timeindex", ".snapshot")
        paths = sorted(path for path in directory.iterdir() if path.suffix in kinds)
        assert dump_log(paths, "--deep-iteration").complaints() == []
    finally:
        klamm.start()

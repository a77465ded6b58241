"""Apache Kafka's DumpLogSegments reads every file that klamm writes, without complaint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat_tests.disk.dump import Dump, dump_log
from compat_tests.disk.workload import PRODUCER_IDS, TOPIC_NAMES, Written

pytestmark = pytest.mark.usefixtures("kafka_jars")


def files(data_dir: Path, *suffixes: str) -> list[Path]:
    """The files of these kinds in all topics."""
    return [
        path
        for topic in TOPIC_NAMES
        for suffix in suffixes
        for path in sorted((data_dir / f"{topic}-0").glob(f"*{suffix}"))
    ]


@pytest.fixture(scope="module")
def dumped(klamm_dir: Path) -> Dump:
    """All files of all topics, in one run of the tool."""
    every = files(klamm_dir, ".log", ".index", ".timeindex", ".snapshot")
    return dump_log(every, "--deep-iteration", "--print-data-log")


def test_there_is_nothing_to_complain_about(dumped: Dump, klamm_dir: Path) -> None:
    assert dumped.complaints() == []
    assert len(dumped.lines) == len(files(klamm_dir, ".log", ".index", ".timeindex", ".snapshot"))


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_the_records_are_those_that_were_sent(
    dumped: Dump, topics: dict[str, Written], topic: str
) -> None:
    read = dumped.only(topic, ".log").records()
    sent = topics[topic].records
    assert [one.offset for one in read] == list(range(len(sent)))
    assert [one.value_size for one in read] == [_size(record.value) for record in sent]
    assert [one.key_size for one in read] == [_size(record.key) for record in sent]
    assert [one.payload or "" for one in read] == [(one.value or b"").decode() for one in sent]
    assert [one.header_keys for one in read] == [
        ",".join((name or b"").decode() for name, _ in record.headers) for record in sent
    ]
    kind = "LogAppendTime" if topic == "stamped" else "CreateTime"
    assert {one.timestamp_type for one in read} == {kind}


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@pytest.mark.parametrize("topic", TOPIC_NAMES)
def test_every_segment_has_its_indexes(dumped: Dump, topic: str) -> None:
    segments = dumped.only(topic, ".log").lines
    assert len(segments) >= (1 if topic == "stamped" else 2)
    for name in segments:
        assert len(dumped.lines[name.removesuffix(".log") + ".index"]) > 5
        assert len(dumped.lines[name.removesuffix(".log") + ".timeindex"]) > 0


def test_the_last_snapshot_names_every_producer(dumped: Dump) -> None:
    *_, last = dumped.only("sequenced", ".snapshot").lines.values()
    assert {int(line.split()[1]) for line in last} == set(PRODUCER_IDS)
    of_the_second = [line for line in last if line.split()[1] == str(PRODUCER_IDS[1])]
    assert all("producerEpoch: 1 " in line for line in of_the_second)


def test_the_index_files_pass_the_sanity_check(klamm_dir: Path) -> None:
    every = files(klamm_dir, ".index", ".timeindex")
    checked = dump_log(every, "--index-sanity-check")
    assert checked.complaints() == []
    assert [checked.lines[str(path)] for path in every] == [
        [f"{path} passed sanity check."] for path in every
    ]


def test_damage_would_be_noticed(klamm_dir: Path, tmp_path: Path) -> None:
    """The tool ends well whatever it finds: this shows that its complaints are seen."""
    directory = tmp_path / "plain-0"
    shutil.copytree(klamm_dir / "plain-0", directory)
    log, index = directory / f"{0:020d}.log", directory / f"{0:020d}.index"
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    entries = bytearray(index.read_bytes())
    entries[3] += 1
    index.write_bytes(entries)
    complaints = dump_log([log, index]).complaints()
    assert any("isvalid: false" in line for line in complaints)
    assert any("Mismatches in" in line for line in complaints)


def test_the_metadata_log_holds_metadata_records(klamm_dir: Path) -> None:
    logs = sorted((klamm_dir / "__cluster_metadata-0").glob("*.log"))
    dumped = dump_log(logs, "--cluster-metadata-decoder", "--deep-iteration")
    assert dumped.complaints() == []
    text = "\n".join(line for lines in dumped.lines.values() for line in lines)
    for topic in TOPIC_NAMES:
        assert f'"type":"TOPIC_RECORD","version":0,"data":{{"name":"{topic}"' in text
    assert text.count('"type":"PARTITION_RECORD"') == len(TOPIC_NAMES)

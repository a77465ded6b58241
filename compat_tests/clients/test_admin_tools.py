"""Apache Kafka's command line tools for administrators, unmodified."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.clients.fixtures import (
    Broker,
    ClientNamed,
    MakeTopic,
    OwnBroker,
    create_topic,
)
from compat_tests.clients.model import Record
from compat_tests.clients.test_tools import run

pytestmark = pytest.mark.usefixtures("kafka_jars")

NODE_ID = 1
MOVE_TIMEOUT_S = 60


def as_file(folder: Path, content: Any) -> str:
    file = folder / "input.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return str(file)


def test_log_dirs(broker: Broker, make_topic: MakeTopic, client_named: ClientNamed) -> None:
    topic = make_topic(2)
    client_named("confluent-kafka").produce(broker.bootstrap, topic, [Record(b"x" * 1000)])
    shown = run("kafka-log-dirs", broker, "--describe", "--topic-list", topic)
    (node,) = json.loads(shown.strip().split("\n")[-1])["brokers"]
    (directory,) = node["logDirs"]
    assert (node["broker"], directory["error"]) == (NODE_ID, None)
    assert Path(directory["logDir"]).is_absolute()
    sizes = {one["partition"]: one["size"] for one in directory["partitions"]}
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    assert sorted(sizes.values())[0] == 0
    assert 1000 < sorted(sizes.values())[1] < 2000


def test_leader_election(broker: Broker, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(2)
    named = [{"topic": topic, "partition": index} for index in range(2)]
    shown = run(
        *("kafka-leader-election", broker, "--election-type", "preferred"),
        *("--path-to-json-file", as_file(tmp_path, {"partitions": named})),
    )
    said, partitions = shown.strip().split(" partitions ")
    assert said == "Valid replica already elected for"
    # The tool keeps them in a set.
    assert sorted(partitions.split(", ")) == [f"{topic}-0", f"{topic}-1"]


def test_reassignments(broker: Broker, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(2)
    plan = [
        {"topic": topic, "partition": index, "replicas": [NODE_ID], "log_dirs": ["any"]}
        for index in range(2)
    ]
    file = as_file(tmp_path, {"version": 1, "partitions": plan})
    moving = ("--reassignment-json-file", file)
    executed = run("kafka-reassign-partitions", broker, "--execute", *moving)
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in executed
    # It takes throttles back that nobody has set, by IncrementalAlterConfigs.
    verified = run("kafka-reassign-partitions", broker, "--verify", *moving)
    for index in range(2):
        assert f"Reassignment of partition {topic}-{index} is completed." in verified
    listed = run("kafka-reassign-partitions", broker, "--list")
    assert listed.strip() == "No partition reassignments found."


def test_moves_between_log_directories(
    own_broker: OwnBroker, client_named: ClientNamed, tmp_path: Path
) -> None:
    """A topic that is filled moves to the second directory, and all of it is there."""
    roots = [tmp_path / "broker-0", tmp_path / "second"]
    broker = own_broker({"log.dirs": ",".join(map(str, roots)), "log.segment.bytes": "1048576"})
    broker.start()
    create_topic(broker.bootstrap, "topic", 2)
    client = client_named("confluent-kafka")
    records = [Record(b"%05d" % number + bytes(1000)) for number in range(5000)]
    client.produce(broker.bootstrap, "topic", records)

    def held() -> dict[str, list[str]]:
        shown = run("kafka-log-dirs", broker, "--describe", "--topic-list", "topic")
        (node,) = json.loads(shown.strip().split("\n")[-1])["brokers"]
        return {
            directory["logDir"]: sorted(one["partition"] for one in directory["partitions"])
            for directory in node["logDirs"]
        }

    assert sorted(map(len, held().values())) == [1, 1]
    second = str(roots[1])
    plan = [
        {"topic": "topic", "partition": index, "replicas": [NODE_ID], "log_dirs": [second]}
        for index in range(2)
    ]
    moving = (
        "--reassignment-json-file",
        as_file(tmp_path, {"version": 1, "partitions": plan}),
    )
    executed = run("kafka-reassign-partitions", broker, "--execute", *moving)
    assert f"log directory to {second} for replica topic-0 with broker {NODE_ID}" in executed
    gives_up_at = time.monotonic() + MOVE_TIMEOUT_S
    while held() != {str(roots[0]): [], second: ["topic-0", "topic-1"]}:
        assert time.monotonic() < gives_up_at, held()
    verified = run("kafka-reassign-partitions", broker, "--verify", "--preserve-throttles", *moving)
    assert f"Reassignment of replica topic-0-{NODE_ID} completed successfully." in verified
    found = client.consume(broker.bootstrap, "topic", len(records))
    assert [one.value for one in found] == [one.value for one in records]


def test_the_metadata_quorum(broker: Broker) -> None:
    status = run("kafka-metadata-quorum", broker, "describe", "--status")
    assert re.search(rf"^LeaderId: +{NODE_ID}$", status, re.MULTILINE), status
    assert re.search(r"^MaxFollowerLag: +0$", status, re.MULTILINE), status
    assert re.search(rf'^CurrentVoters: +\[\{{"id": {NODE_ID}, ', status, re.MULTILINE), status
    assert re.search(r"^CurrentObservers: +\[\]$", status, re.MULTILINE), status
    _, replica = (
        run("kafka-metadata-quorum", broker, "describe", "--replication").strip().split("\n")
    )
    assert re.match(rf"{NODE_ID}\s+[\w-]{{22}}\s+\d+\s+0\s+\d+\s+\d+\s+Leader", replica), replica


def test_features(broker: Broker) -> None:
    shown = run("kafka-features", broker, "describe")
    assert re.search(
        r"^Feature: group.version\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 1\s"
        r"+FinalizedVersionLevel: 1\s",
        shown,
        re.MULTILINE,
    ), shown
    assert re.search(
        r"^Feature: metadata.version\s.*FinalizedVersionLevel: 4\.3-IV0\s", shown, re.M
    )
    same = run(*("kafka-features", broker, "upgrade", "--dry-run", "--feature", "group.version=1"))
    assert same.strip() == "group.version can be upgraded to 1."


def test_producers(broker: Broker, make_topic: MakeTopic, client_named: ClientNamed) -> None:
    topic = make_topic()
    records = [Record(b"one"), Record(b"two")]
    client_named("confluent-kafka").produce(broker.bootstrap, topic, records)
    shown = run(
        *("kafka-transactions", broker, "describe-producers"),
        *("--topic", topic, "--partition", "0"),
    )
    head, producer = (line.split() for line in shown.strip().split("\n"))
    seen = dict(zip(head, producer, strict=True))
    assert int(seen["ProducerId"]) >= 0
    assert (seen["ProducerEpoch"], seen["LastSequence"]) == ("0", "1")
    assert seen["CurrentTransactionStartOffset"] == "None"


def test_librdkafka_lists_all_topics(broker: Broker, make_topic: MakeTopic) -> None:
    """librdkafka 2.16 puts three bytes behind this request."""
    topic = make_topic(2)
    listed = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30)
    assert len(listed.topics[topic].partitions) == 2

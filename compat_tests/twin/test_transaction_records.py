"""What transactions leave in `__transaction_state`: Kafka's own tool finds the same on both sides.

Both brokers have the same conversations; then DumpLogSegments reads the partitions of their ids.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka import ApacheKafka
from compat_tests.disk.dump import Dump, dump_log
from compat_tests.klamm_process import KlammProcess
from compat_tests.twin.comparison import differences
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.may_differ import about_the_same_time
from compat_tests.twin.test_group_records import partition_of
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import VERIFYING, Producer

_RECORD = re.compile(r"^\| offset: \d+ .*? key: (.*?) payload: (.*)$")
_BATCH_FIELD = re.compile(
    r"\b(baseSequence|producerId|producerEpoch|isTransactional|isControl|compresscodec): (\S+)"
)
PRODUCER_IDS = ("producerId", "previousProducerId", "nextProducerId")

RULES = {
    "[].value.data.transactionLastUpdateTimestampMs": about_the_same_time,
    "[].value.data.transactionStartTimestampMs": about_the_same_time,
}


def test_records_of_transactions(
    twin: Twin,
    talk: Conversation,
    producer: Producer,
    apache_kafka: ApacheKafka,
    other_broker: ApacheKafka | KlammProcess,
) -> None:
    topic = twin.create_topic(partitions=3)
    older, fenced = Producer(twin), Producer(twin)
    play_version_2(talk, producer, topic)
    play_version_1(talk, older, topic)
    play_fence(talk, fenced, topic)
    every = [producer.id, older.id, fenced.id]
    found = []
    for side, data_dir in zip(
        talk.sides, (apache_kafka.data_dir, other_broker.data_dir), strict=True
    ):
        paths = logs(data_dir, every)
        shown = dump_log(paths, "--transaction-log-decoder")
        found.append({name: records(shown, side, name) for name in every})
    for name in every:
        assert found[0][name], f"there is nothing of {name}"
        assert not differences(found[0][name], found[1][name], rules=RULES, keyed={}), name


def play_version_2(talk: Conversation, producer: Producer, topic: str) -> None:
    producer.init(talk, timeout=12_345)
    producer.write(talk, topic)
    for commit in (True, False):
        producer.write(talk, topic, partition=2)
        producer.add(talk, {topic: [0, 1, 2]}, version=5)
        producer.end(talk, commit=commit)
        producer.settle(talk)
    producer.end(talk, commit=False)
    producer.settle(talk)
    producer.init(talk, goes_on=True)


def play_version_1(talk: Conversation, producer: Producer, topic: str) -> None:
    producer.init(talk)
    for commit in (True, False):
        producer.add(talk, {topic: [0, 1]})
        producer.write(talk, topic, version=VERIFYING)
        producer.add_offsets(talk, "group")
        producer.end(talk, commit=commit, version=4)
        producer.settle(talk)


def play_fence(talk: Conversation, producer: Producer, topic: str) -> None:
    producer.init(talk)
    producer.write(talk, topic)
    producer.init(talk, wait=False)
    producer.init(talk)


def logs(data_dir: Path, ids: list[str]) -> list[Path]:
    folders = {data_dir / f"__transaction_state-{partition_of(name)}" for name in ids}
    return sorted(path for folder in folders for path in folder.glob("*.log"))


def records(shown: Dump, side: Side, transactional_id: str) -> list[Any]:
    """The records of one id in the order of the log, with names that both sides share."""
    found = []
    for lines in shown.lines.values():
        batch: dict[str, str] = {}
        for line in lines:
            match = _RECORD.match(line)
            if match is None:
                batch = dict(_BATCH_FIELD.findall(line))
                continue
            key, value = (json.loads(part) for part in match.groups())
            if key["data"]["transactionalId"] != transactional_id:
                continue
            data = value["data"]
            for name in PRODUCER_IDS:
                if data.get(name, -1) >= 0:
                    data[name] = side.producers[data[name]]
            for topic in data["transactionPartitions"] or ():
                # The order of a hash set.
                topic["partitionIds"].sort()
            if data["transactionPartitions"]:
                data["transactionPartitions"].sort(key=lambda topic: str(topic["topic"]))
            found.append({"key": key, "value": value, "batch": batch})
    return found

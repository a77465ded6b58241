"""What groups leave in `__consumer_offsets`: Kafka's own tool decodes it, and finds the same.

Both brokers have the same conversations; then DumpLogSegments reads the partitions of their groups.
The same records must be there on both sides, in the same order.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka import ApacheKafka
from compat_tests.disk.dump import Dump, dump_log
from compat_tests.klamm_process import KlammProcess
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import encode_request
from compat_tests.twin.comparison import differences
from compat_tests.twin.connection import Connection
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import Conversation, Side
from compat_tests.twin.groups import Group, subscription
from compat_tests.twin.may_differ import about_the_same_time, both_zero_or_neither
from compat_tests.twin.requests import Committed, commit_topics, offset_commit
from compat_tests.twin.test_group_migration import assignment, owned
from compat_tests.twin.test_offset_delete import delete
from compat_tests.twin.topics import Twin

OFFSETS_PARTITIONS = 50
TARGET_ASSIGNMENT = "7"

_RECORD = re.compile(r"^\| offset: \d+ .*? key: (.*?) payload: (.*)$")
_BATCH_FIELD = re.compile(
    r"\b(baseSequence|producerId|producerEpoch|isTransactional|isControl|compresscodec): (\S+)"
)

# Times are each broker's own, and the hash is made of topic ids, which are chance.
RULES = {
    "[].value.data.currentStateTimestamp": about_the_same_time,
    "[].value.data.commitTimestamp": about_the_same_time,
    "[].value.data.expireTimestamp": about_the_same_time,
    "[].value.data.assignmentTimestamp": about_the_same_time,
    "[].value.data.metadataHash": both_zero_or_neither,
}


def partition_of(group: str) -> int:
    """Java's hash of the group id, modulo the number of partitions."""
    code = 0
    for letter in group:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return abs(signed) % OFFSETS_PARTITIONS


def logs(data_dir: Path, groups: Iterable[str]) -> list[Path]:
    folders = {data_dir / f"__consumer_offsets-{partition_of(group)}" for group in groups}
    return sorted(path for folder in folders for path in folder.glob("*.log"))


def records(shown: Dump, data_dir: Path, side: Side, group: str, topics: Iterable[str]) -> Any:
    """The records of one group in the order of the log, with names that both sides share."""
    folder = data_dir / f"__consumer_offsets-{partition_of(group)}"
    labels = {_as_text(side.topic_id(topic).bytes): f"<id of {topic}>" for topic in topics}
    found = []
    for path in logs(data_dir, [group]):
        assert path.parent == folder
        batch: dict[str, str] = {}
        for line in shown.lines[str(path)]:
            match = _RECORD.match(line)
            if match is None:
                batch = dict(_BATCH_FIELD.findall(line))
                continue
            text = list(match.groups())
            for random_part, label in (*side.members.items(), *labels.items()):
                text = [part.replace(random_part, label) for part in text]
            key = json.loads(text[0])
            if group in (key["data"].get("group"), key["data"].get("groupId")):
                value = None if text[1] == "<DELETE>" else json.loads(text[1])
                found.append({"key": key, "value": _in_order(value), "batch": batch})
    return _runs_in_order(found)


def _as_text(identifier: bytes) -> str:
    return base64.urlsafe_b64encode(identifier).decode().rstrip("=")


def _in_order(value: Any) -> Any:
    """Classic members are written in the order of a hash map of chance ids."""
    if value is not None and "members" in value["data"]:
        value["data"]["members"].sort(key=lambda member: member["memberId"])
    return value


def _runs_in_order(found: list[Any]) -> list[Any]:
    """So are new targets and tombstones, when several of one kind follow each other."""

    def kind(record: Any) -> tuple[str, bool]:
        return record["key"]["type"], record["value"] is None

    ordered: list[Any] = []
    for (name, is_tombstone), run in itertools.groupby(found, kind):
        one_after_the_other = list(run)
        if is_tombstone or name == TARGET_ASSIGNMENT:
            one_after_the_other.sort(key=lambda record: json.dumps(record["key"]))
        ordered += one_after_the_other
    return ordered


def test_records_of_groups(
    twin: Twin,
    talk: Conversation,
    group: Group,
    consumer_group: ConsumerGroup,
    apache_kafka: ApacheKafka,
    other_broker: ApacheKafka | KlammProcess,
) -> None:
    topic = consumer_group.create_topic(partitions=3)
    with ExitStack() as closing:
        offsets, upgraded, downgraded = (
            closing.enter_context(contextlib.closing(Group(twin))) for _ in range(3)
        )
        play_classic(group, topic)
        play_offsets(talk, offsets, topic)
        play_consumer(consumer_group, topic)
        for play, classic in ((play_upgrade, upgraded), (play_downgrade, downgraded)):
            modern = closing.enter_context(contextlib.closing(ConsumerGroup(twin, classic.id)))
            modern.wait_until_assignable(topic, 3)
            play(classic, modern, topic)
        every = [group.id, offsets.id, consumer_group.id, upgraded.id, downgraded.id]
        compare(twin, (apache_kafka.data_dir, other_broker.data_dir), every, topic)


def test_klamm_takes_over_groups_of_apache_kafka(
    twin: Twin,
    group: Group,
    consumer_group: ConsumerGroup,
    apache_kafka: ApacheKafka,
    tmp_path: Path,
) -> None:
    """klamm on the files that Apache Kafka wrote knows the same members and epochs.

    Offsets it forgets here: they belong to a topic with an id that it never gave.
    """
    topic = consumer_group.create_topic(partitions=3)
    group.stable("leader", "follower", protocols=(("range", b"x"),))
    first, second = consumer_group.member("first"), consumer_group.member("second", instance="two")
    first.join([topic])
    second.join([topic], rack_id="rack 1")
    first.settle(2, second)

    klamm = KlammProcess(tmp_path / "data")
    with klamm:
        make_offsets_topic(klamm)
    for name in (group.id, consumer_group.id):
        folder = f"__consumer_offsets-{partition_of(name)}"
        for path in (apache_kafka.data_dir / folder).glob("*.log"):
            shutil.copy(path, klamm.data_dir / folder)
        for path in (klamm.data_dir / folder).glob("*.*index"):
            path.unlink()
    with klamm, contextlib.closing(Twin(apache_kafka.port, klamm.port, same_broker=False)) as pair:
        for side, known in zip(pair.sides, (twin.sides[0],) * 2, strict=True):
            side.members.update(known.members)
        pair.wait_until_groups_are_served()
        talk = pair.control
        talk.ask("describe_groups", 6, {"groups": [group.id]})
        body = {"group_ids": [consumer_group.id]}
        talk.ask("consumer_group_describe", 1, body, prepare=_without_topics)


def make_offsets_topic(klamm: KlammProcess) -> None:
    body = {"key_type": 0, "coordinator_keys": ["a"]}
    frame = encode_request("find_coordinator", 6, body)
    with contextlib.closing(Connection(klamm.port)) as connection:
        connection.send_frame(frame)
        assert connection.receive_frame() is not None


def _without_topics(reply: Any) -> Any:
    """The topic of these members is not there: it is not told what they have of it."""
    for described in reply["groups"]:
        for member in described["members"]:
            member["assignment"] = member["target_assignment"] = None
    return reply


def compare(twin: Twin, folders: tuple[Path, Path], groups: list[str], topic: str) -> None:
    """One run of the tool for the files of both brokers."""
    paths = [path for folder in folders for path in logs(folder, groups)]
    shown = dump_log(paths, "--offsets-decoder")
    assert shown.complaints() == []
    with all_cases() as cases:
        for name in groups:
            kafka, other = (
                records(shown, folder, side, name, [topic])
                for folder, side in zip(folders, twin.sides, strict=True)
            )
            with cases.case(name):
                assert len(kafka) > 4
                found = differences(kafka, other, rules=RULES, keyed={})
                assert not found, "".join(f"\n  {one}" for one in found)


def play_classic(group: Group, topic: str) -> None:
    """Two members, of whom one is static and comes back; commits; everybody leaves."""
    protocols = (("range", subscription(topic)), ("roundrobin", subscription(topic)))
    leader, static = group.member("leader"), group.member("static", instance="one")
    leader.enter(protocols=protocols)
    group.gather(static, protocols=protocols)
    group.rejoin(leader, static, protocols=protocols)
    group.sync(leader, static)
    static.commit(commit_topics((topic, {0: Committed(3, "ä", 1), 1: Committed(4, None)})))
    again = group.member("again", instance="one")
    again.join(protocols=protocols)
    again.sync()
    again.commit(commit_topics((topic, {0: 5})), 2)
    leader.leave()
    again.leave()


def play_offsets(talk: Conversation, group: Group, topic: str) -> None:
    """Offsets without members, one of them deleted, and then all."""
    every = {0: Committed(1, "x"), 1: Committed(2), 2: Committed(3)}
    talk.ask("offset_commit", 10, offset_commit(group.id, (topic, every)))
    body = offset_commit(group.id, (topic, {0: 9}), retention_time=86_400_000)
    talk.ask("offset_commit", 4, body)
    talk.ask("offset_delete", 0, delete(group.id, (topic, [1])))
    talk.ask("delete_groups", 2, {"groups_names": [group.id]})


def play_consumer(group: ConsumerGroup, topic: str) -> None:
    """Two members share; a static one goes for a while; they leave; the group is deleted."""
    first, second = group.member("first"), group.member("second", instance="two")
    first.join([topic], rack_id="rack 1", server_assignor="range")
    second.join([topic])
    first.settle(2, second)
    first.commit(commit_topics((topic, {0: 7})))
    second.leave(epoch=-2)
    again = group.member("again", instance="two")
    again.join([topic])
    again.own()
    first.beat(subscribed_topic_names=[topic, "later"])
    first.leave()
    again.settle(1)
    again.leave()
    group.twin.control.ask("delete_groups", 2, {"groups_names": [group.id]})


def play_upgrade(classic_group: Group, consumer_group: ConsumerGroup, topic: str) -> None:
    """A classic group becomes a consumer group by its first consumer."""
    classic = classic_group.member("classic")
    classic.enter(protocols=(("range", subscription(topic)),))
    classic.sync({classic: assignment(topic, 0, 1, 2)})
    modern = consumer_group.member("modern")
    modern.join([topic])
    classic.heartbeat()
    classic.join(protocols=(("range", owned(topic, 0, 1)),))
    classic.sync()
    modern.settle(1)
    classic.leave()
    modern.settle(2)


def play_downgrade(classic_group: Group, consumer_group: ConsumerGroup, topic: str) -> None:
    """A consumer group becomes a classic group when its last consumer leaves."""
    modern = consumer_group.member("modern")
    modern.join([topic])
    modern.own()
    classic = classic_group.member("classic")
    for _ in range(2):
        classic.join(protocols=(("range", owned(topic)),))
    classic.sync()
    modern.leave()
    classic.heartbeat()
    classic.join(protocols=(("range", owned(topic)),))
    classic.sync({classic: assignment(topic, 0, 1, 2)})
    classic.leave()

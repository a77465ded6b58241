"""TxnOffsetCommit in every version, and what is then fetched, deleted and stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compat_tests.apache_kafka import ApacheKafka
from compat_tests.disk.dump import dump_log
from compat_tests.klamm_process import KlammProcess
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.comparison import differences
from compat_tests.twin.consumer_groups import ConsumerGroup
from compat_tests.twin.conversation import Conversation, Pair, Side
from compat_tests.twin.groups import Group
from compat_tests.twin.requests import Committed, commit_topics, offset_commit, offset_fetch
from compat_tests.twin.test_group_records import RULES, logs, records
from compat_tests.twin.test_offset_delete import delete
from compat_tests.twin.topics import Twin
from compat_tests.twin.transactions import Producer

# From this version on the partition of the group is added by the request.
ADDING = 5
METADATA_BYTES_MAX = 4096

Topics = tuple[str, Mapping[int, Committed | int]]


class Commits:
    """One producer that commits for one group, by requests of one version."""

    def __init__(self, talk: Conversation, producer: Producer, group: str, version: int) -> None:
        self.talk = talk
        self.producer = producer
        self.group = group
        self.version = version

    def begin(self) -> None:
        """What comes before the first commit."""
        self.producer.init(self.talk, 5 if self.version >= ADDING else 4)
        self.add()

    def add(self) -> None:
        if self.version < ADDING:
            self.producer.add_offsets(self.talk, self.group)

    def commit(self, *topics: Topics, epoch: int = 0, producer: int = 0, **fields: Any) -> Pair:
        def body(side: Side) -> Plain:
            said = {
                "transactional_id": self.producer.id,
                "group_id": self.group,
                "generation_id": -1,
                "member_id": "",
                "group_instance_id": None,
                **self.producer.identity(side, epoch=epoch, producer=producer),
                "topics": [
                    {"name": topic["name"], "partitions": topic["partitions"]}
                    for topic in commit_topics(*topics)(side)
                ],
            }
            given = {key: one(side) if callable(one) else one for key, one in fields.items()}
            return {**said, **given}

        return self.talk.ask("txn_offset_commit", self.version, body)

    def end(self, *, commit: bool = True) -> None:
        self.producer.end(self.talk, commit=commit, version=5 if self.version >= ADDING else 4)
        self.producer.settle(self.talk)

    def fetch(self, asked: Mapping[str, list[int]] | None = None) -> None:
        """What the group has committed, stable or not."""
        for stable in (False, True):
            body = offset_fetch((self.group, asked), require_stable=stable)
            self.talk.ask("offset_fetch", 9, body)


@pytest.fixture
def commits(talk: Conversation, producer: Producer, group: Group, version: int) -> Commits:
    return Commits(talk, producer, group.id, version)


every_version = pytest.mark.every_version("txn_offset_commit")


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@every_version
def test_offsets_are_pending_until_the_end(
    twin: Twin, talk: Conversation, group: Group, commits: Commits, version: int, commit: bool
) -> None:
    topic, other = twin.create_topic(partitions=3), twin.create_topic()
    asked = {topic: [0, 1, 2], other: [0]}
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1})))
    commits.begin()
    commits.commit(
        (topic, {0: Committed(5, "checkpoint", 0), 2: Committed(7, None)}),
        (other, {0: Committed(9, "x" * METADATA_BYTES_MAX, 3)}),
    )
    for fetch_version in range(7, 11):
        for every in (asked, None):
            body = offset_fetch((group.id, every), require_stable=True)
            talk.ask("offset_fetch", fetch_version, body)
    commits.fetch(asked)
    commits.end(commit=commit)
    commits.fetch(asked)
    commits.fetch()
    group.describe()
    # The next transaction of the same producer.
    commits.add()
    commits.commit((topic, {0: 6}))
    commits.fetch()
    commits.end()
    commits.fetch()


@every_version
def test_partitions_and_metadata(
    twin: Twin, talk: Conversation, commits: Commits, version: int
) -> None:
    topic, unknown = twin.create_topic(partitions=2), twin.unused_name("unknown")
    requests: list[list[Topics]] = [
        [(unknown, {0: 1})],
        [(topic, {2: 1})],
        [(topic, {-1: 1, 1: 1})],
        [(unknown, {0: 1, 1: 1}), (topic, {0: 3, 7: 1})],
        [(topic, {0: Committed(8, "x" * 5000), 1: Committed(9)}), (unknown, {0: 1})],
        [(topic, {0: Committed(-1), 1: Committed(-5, leader_epoch=-5)})],
        [(topic, {0: 1}), (topic, {0: 2})],
        [("", {0: 1})],
        [(topic, {})],
        [],
    ]
    commits.begin()
    with all_cases() as cases:
        for topics in requests:
            with cases.case(str(topics)[:100]):
                commits.commit(*topics)
                commits.fetch({topic: [0, 1]})
    commits.end()
    commits.fetch()


@every_version
def test_producers_that_may_not(
    twin: Twin, talk: Conversation, commits: Commits, version: int
) -> None:
    topic = twin.create_topic()
    commits.producer.init(talk, 5 if version >= ADDING else 4)
    stranger = twin.unused_name("stranger")
    bad: list[dict[str, Any]] = [
        {"epoch": -1},
        {"epoch": 1},
        {"producer": 1000},
        {"transactional_id": stranger},
        {"transactional_id": ""},
        {"group_id": ""},
    ]
    with all_cases() as cases:
        for fields in bad:
            with cases.case(str(fields)):
                commits.commit((topic, {0: 1}), **fields)
        if version < ADDING:
            with cases.case("not added"):
                commits.commit((topic, {0: 1}))
    commits.fetch()


@pytest.mark.every_version("txn_offset_commit", since=3)
def test_groups_that_are_not_there(
    twin: Twin, talk: Conversation, group: Group, commits: Commits, version: int
) -> None:
    topic = twin.create_topic()
    commits.begin()
    bad: list[dict[str, Any]] = [
        {"generation_id": 0},
        {"generation_id": 5, "member_id": "a stranger"},
        {"member_id": "a stranger"},
        {"group_instance_id": "an instance"},
        {"generation_id": -2},
    ]
    with all_cases() as cases:
        for fields in bad:
            with cases.case(str(fields)):
                commits.commit((topic, {0: 1}), **fields)
                commits.fetch()
                group.describe()


@pytest.mark.every_version("txn_offset_commit", since=3)
def test_members_of_a_classic_group(
    twin: Twin, talk: Conversation, group: Group, commits: Commits, version: int
) -> None:
    topic = twin.create_topic()
    (member,) = group.stable("first")
    commits.begin()
    with all_cases() as cases:
        for generation in (1, 0, 2, -1):
            for name in (member.id, "", "a stranger"):
                with cases.case(f"{generation} {name}"):
                    commits.commit((topic, {0: 1}), generation_id=generation, member_id=name)
    commits.fetch()
    commits.end()
    commits.fetch()


@pytest.mark.every_version("txn_offset_commit", since=3)
def test_members_of_a_consumer_group(
    twin: Twin,
    talk: Conversation,
    producer: Producer,
    consumer_group: ConsumerGroup,
    version: int,
) -> None:
    topic = consumer_group.create_topic()
    member = consumer_group.member("first")
    member.join([topic])
    member.beat_until({topic: [0]})
    commits = Commits(talk, producer, consumer_group.id, version)
    commits.begin()
    with all_cases() as cases:
        for epoch in (member.epoch, member.epoch - 1, member.epoch + 1, -1, 0):
            for name in ("first", "", "a stranger"):
                with cases.case(f"{epoch} {name}"):
                    commits.commit((topic, {0: 1}), generation_id=epoch, member_id=name)
    commits.fetch()
    commits.end()
    commits.fetch()


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.every_version("txn_offset_commit", since=4)
def test_what_is_deleted_while_it_is_pending(
    twin: Twin, talk: Conversation, group: Group, commits: Commits, version: int, commit: bool
) -> None:
    topic = twin.create_topic(partitions=3)
    asked = {topic: [0, 1, 2]}
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 1, 1: 1})))
    commits.begin()
    commits.commit((topic, {1: 5, 2: 6}))
    talk.ask("offset_delete", 0, delete(group.id, (topic, [1])))
    commits.fetch(asked)
    commits.end(commit=commit)
    commits.fetch(asked)
    commits.add()
    commits.commit((topic, {0: 7, 1: 8}))
    talk.ask("delete_groups", 2, {"groups_names": [group.id]})
    commits.fetch(asked)
    commits.end(commit=commit)
    commits.fetch(asked)
    group.describe()


@pytest.mark.every_version("txn_offset_commit", since=4)
def test_the_last_record_wins(
    twin: Twin, talk: Conversation, group: Group, commits: Commits, version: int
) -> None:
    topic = twin.create_topic()
    other = Commits(talk, Producer(twin), group.id, version)
    for one in (commits, other):
        one.begin()
    commits.commit((topic, {0: 1}))
    other.commit((topic, {0: 2}))
    other.end()
    commits.fetch()
    commits.end()
    commits.fetch()
    commits.add()
    commits.commit((topic, {0: 3}))
    talk.ask("offset_commit", 9, offset_commit(group.id, (topic, {0: 4})))
    commits.end()
    commits.fetch()


def test_records_of_pending_offsets(
    twin: Twin,
    talk: Conversation,
    group: Group,
    producer: Producer,
    apache_kafka: ApacheKafka,
    other_broker: ApacheKafka | KlammProcess,
) -> None:
    """Kafka's own tool finds the same in both logs; only klamm says of which topic they are."""
    topic = twin.create_topic(partitions=2)
    commits = Commits(talk, producer, group.id, ADDING)
    commits.begin()
    commits.commit((topic, {0: Committed(5, "checkpoint", 0), 1: 7}))
    commits.end()
    found = []
    for side, data_dir in zip(
        talk.sides, (apache_kafka.data_dir, other_broker.data_dir), strict=True
    ):
        shown = dump_log(logs(data_dir, [group.id]), "--offsets-decoder")
        of_side = records(shown, data_dir, side, group.id, [topic])
        assert of_side, side.name
        for record in of_side:
            if side is not talk.sides[0]:
                assert record["value"]["data"].pop("topicId") == f"<id of {topic}>"
            number = int(record["batch"]["producerId"])
            record["batch"] = {**record["batch"], "producerId": side.producers[number]}
        found.append(of_side)
    assert not differences(found[0], found[1], rules=RULES, keyed={})

"""Two log directories on both sides: partitions are spread over them, move, and go offline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.twin.batches import R, batch
from compat_tests.twin.brokers import pair_of_brokers
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Body, Conversation, Side
from compat_tests.twin.logs import compare_log, write
from compat_tests.twin.requests import fetch, fetch_partition, list_offsets, produce
from compat_tests.twin.topics import Twin

SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "500"}
FIRST, SECOND = "first", "second"


def beside(data_dir: Path) -> Path:
    return data_dir.with_name(f"{data_dir.name}-{SECOND}")


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    folder = tmp_path_factory.mktemp("two-directories")
    with pair_of_brokers(
        folder, SETTINGS, log_dirs=lambda data_dir: [data_dir, beside(data_dir)]
    ) as pair:
        yield pair


@pytest.fixture(scope="module")
def paths(twin: Twin) -> dict[str, dict[str, str]]:
    """The paths of the directories, by side and by what they are called here."""
    pair = twin.control.ask("describe_log_dirs", 4, {"topics": []}, compare=False)
    return {
        side.name: {label(one["log_dir"]): one["log_dir"] for one in pair[side]["results"]}
        for side in twin.sides
    }


def label(path: str) -> str:
    return SECOND if path.endswith(SECOND) else FIRST


def with_labels(reply: Plain) -> Plain:
    """The directories under names that both brokers share, in one order."""
    results = [{**one, "log_dir": label(one["log_dir"])} for one in reply["results"]]
    return {**reply, "results": sorted(results, key=lambda one: str(one["log_dir"]))}


def counts(reply: Plain) -> Plain:
    """How many partitions are in each directory; which ones, each broker may choose."""
    held = [sum(len(topic["partitions"]) for topic in one["topics"]) for one in reply["results"]]
    return {"held": sorted(held)}


def asked(*topics: str) -> Plain:
    return {"topics": [{"topic": topic, "partitions": [0, 1, 2, 3]} for topic in topics]}


Alter = Callable[..., Callable[[Side], Plain]]


@pytest.fixture
def alter(paths: dict[str, dict[str, str]]) -> Alter:
    """A request to move partition 0 of topics, each to the first or the second directory."""

    def make(*moves: tuple[str, str]) -> Callable[[Side], Plain]:
        def body(side: Side) -> Plain:
            return {
                "dirs": [
                    {
                        "path": paths[side.name][where],
                        "topics": [{"name": topic, "partitions": [0]}],
                    }
                    for topic, where in moves
                ]
            }

        return body

    return make


def wait_until_in(twin: Twin, where: str, topic: str) -> None:
    def is_there(reply: Plain) -> bool:
        held = [
            (label(one["log_dir"]), partition["is_future_key"])
            for one in reply["results"]
            for found in one["topics"]
            for partition in found["partitions"]
        ]
        return held == [(where, False)]

    twin.wait("describe_log_dirs", 4, {"topics": [{"topic": topic, "partitions": [0]}]}, is_there)


def test_partitions_are_spread(twin: Twin, talk: Conversation) -> None:
    topic = twin.create_topic(partitions=4)
    pair = talk.ask("describe_log_dirs", 4, asked(topic), prepare=counts)
    assert counts(pair.kafka) == {"held": [2, 2]}


@pytest.mark.every_version("describe_log_dirs")
def test_both_are_described(twin: Twin, talk: Conversation, version: int) -> None:
    talk.ask("describe_log_dirs", version, {"topics": []}, prepare=with_labels)


@pytest.mark.every_version("alter_replica_log_dirs")
def test_a_partition_moves(twin: Twin, talk: Conversation, alter: Alter, version: int) -> None:
    topic = twin.create_topic("moving")
    write(talk, topic, batch(R(b"1"), R(b"2")), batch(R(b"3")))
    for where in (FIRST, SECOND, FIRST):
        talk.ask("alter_replica_log_dirs", version, alter((topic, where)))
        wait_until_in(twin, where, topic)
        talk.ask("describe_log_dirs", 4, asked(topic), prepare=with_labels)
        write(talk, topic, batch(R(where.encode())))
        compare_log(talk, topic)
    # The last one that is named counts.
    body = alter((topic, FIRST), (topic, SECOND))
    talk.ask("alter_replica_log_dirs", version, body)
    wait_until_in(twin, SECOND, topic)


def test_what_does_not_move(twin: Twin, talk: Conversation, alter: Alter) -> None:
    unknown = twin.unused_name("unknown")
    for topic in (unknown, "x" * 214, "x" * 213):
        for where in (FIRST, SECOND):
            talk.ask("alter_replica_log_dirs", 2, alter((topic, where)))


def test_a_directory_fails(
    twin: Twin, talk: Conversation, alter: Alter, paths: dict[str, dict[str, str]]
) -> None:
    """The last test here: the directory stays offline."""
    good, bad = twin.create_topic("good"), twin.create_topic("bad")
    for topic, where in ((good, FIRST), (bad, SECOND)):
        talk.ask("alter_replica_log_dirs", 2, alter((topic, where)))
        wait_until_in(twin, where, topic)
        write(talk, topic, batch(R(b"1")))
    for side in twin.sides:
        path = Path(paths[side.name][SECOND])
        path.rename(path.with_name(path.name + ".away"))
        path.write_text("")
        assert os.path.isfile(path)
    named = {"topics": [{"name": bad}], "allow_auto_topic_creation": False}
    twin.wait(
        *("metadata", 12, named),
        lambda reply: reply["topics"][0]["partitions"][0]["leader_id"] == -1,
    )
    both = {"topics": [{"name": good}, {"name": bad}], "allow_auto_topic_creation": False}
    for version in (1, 4, 5, 8, 12, 13):
        talk.ask("metadata", version, both)
    limited = {"response_partition_limit": 100, "cursor": None}
    named_only = {"topics": [{"name": good}, {"name": bad}], **limited}
    talk.ask("describe_topic_partitions", 0, named_only)
    for topic in (good, bad):
        requests: list[tuple[str, int, Body]] = [
            ("produce", 9, produce(topic, batch(R(b"2")))),
            ("produce", 13, produce(topic, batch(R(b"3")))),
            ("fetch", 12, fetch({topic: [fetch_partition(0)]})),
            ("fetch", 13, fetch({topic: [fetch_partition(0)]})),
            ("list_offsets", 7, list_offsets(topic, -1)),
            ("list_offsets", 7, list_offsets(topic, -2)),
            ("offset_for_leader_epoch", 4, leader_epoch(topic)),
            ("describe_producers", 0, {"topics": [{"name": topic, "partition_indexes": [0]}]}),
            ("delete_records", 2, delete_records(topic)),
            ("elect_leaders", 2, election(topic)),
        ]
        for api, version, body in requests:
            talk.ask(api, version, body)
        for where in (FIRST, SECOND):
            talk.ask("alter_replica_log_dirs", 2, alter((topic, where)))
    talk.ask("describe_log_dirs", 5, asked(good, bad), prepare=with_labels)
    talk.ask("describe_log_dirs", 1, asked(good, bad), prepare=with_labels)
    # New partitions all go to what is left.
    later = twin.create_topic("later", partitions=4)
    talk.ask("describe_log_dirs", 4, asked(later), prepare=with_labels)
    talk.ask("delete_topics", 6, {"topics": [{"name": bad}], "timeout": 10_000})
    twin.wait_until_gone(bad)


def leader_epoch(topic: str) -> Plain:
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    return {"replica_id": -1, "topics": [{"topic": topic, "partitions": [partition]}]}


def delete_records(topic: str) -> Plain:
    partitions = [{"partition_index": 0, "offset": -1}]
    return {"topics": [{"name": topic, "partitions": partitions}], "timeout": 10_000}


def election(topic: str) -> Plain:
    partitions = [{"topic": topic, "partitions": [0]}]
    return {"election_type": 0, "topic_partitions": partitions, "timeout": 10_000}

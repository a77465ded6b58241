"""The metadata log is one of KRaft: elections, voters, snapshots and transactions."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from klamm.broker.metadata.quorum import Quorum
from klamm.broker.metadata.store import MetadataStore
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.kraft import METADATA, ROOT, add_records, data_batch, write_file
from klamm.broker.tests.raw_client import (
    RawClient,
    create_topic,
    describe_topic,
    produce_to,
)
from klamm.log.errors import CorruptFileError, InconsistentDirectoryError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.reading import read_log
from klamm.wire.messages.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from klamm.wire.records.control import ControlRecordType, parse_control_type
from klamm.wire.records.record import iter_records

LEADER_CHANGE = ControlRecordType.LEADER_CHANGE
VOTERS = [LEADER_CHANGE, ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS]
SEGMENT = f"{METADATA}/{0:020d}.log"


def start_and_stop(fs: MemoryFileSystem) -> None:
    with running_broker(ROOT, fs=fs):
        pass


def elections(fs: MemoryFileSystem) -> dict[int, list[ControlRecordType]]:
    """The control records of each epoch."""
    return {
        header.partition_leader_epoch: [parse_control_type(one.key) for one in iter_records(batch)]
        for header, batch in read_log(fs, METADATA)
        if header.is_control
    }


def test_every_start_is_an_election_and_the_first_one_names_the_voter() -> None:
    fs = MemoryFileSystem()
    for _ in range(3):
        start_and_stop(fs)
    assert elections(fs) == {1: VOTERS, 2: [LEADER_CHANGE], 3: [LEADER_CHANGE]}
    assert MetadataStore(fs, ROOT).quorum == Quorum(epoch=3, voters={1}, is_settled=True)


def test_an_epoch_that_only_the_quorum_knows_is_not_used_again() -> None:
    """Voters that stand in the settings of each node are not named in the log."""
    fs = MemoryFileSystem()
    state = {"leaderId": -1, "leaderEpoch": 7, "votedId": 1, "currentVoters": [{"voterId": 1}]}
    write_file(fs, f"{METADATA}/quorum-state", json.dumps(state | {"data_version": 0}).encode())
    start_and_stop(fs)
    assert elections(fs) == {8: [LEADER_CHANGE]}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"leaderEpoch": "x"}', b"\xff"])
def test_a_quorum_that_cannot_be_read_is_not_taken_for_none(content: bytes) -> None:
    fs = MemoryFileSystem()
    write_file(fs, f"{METADATA}/quorum-state", content)
    with pytest.raises(CorruptFileError, match="quorum-state"):
        RunningBroker(ROOT, fs=fs).start()


def test_other_voters_make_another_cluster() -> None:
    fs = MemoryFileSystem()
    state = {"leaderEpoch": 7, "currentVoters": [{"voterId": 1}, {"voterId": 2}]}
    write_file(fs, f"{METADATA}/quorum-state", json.dumps(state).encode())
    with pytest.raises(InconsistentDirectoryError, match="other nodes"):
        RunningBroker(ROOT, fs=fs).start()


def test_partitions_that_kafka_left_without_a_leader_are_led_again() -> None:
    fs = MemoryFileSystem()
    with running_broker(ROOT, fs=fs) as broker, RawClient(broker) as client:
        topic_id = create_topic(client, "topic")
        produce_to(client, "topic")
        create_topic(client, "other")
    left = PartitionChangeRecord(
        partition_id=0,
        topic_id=topic_id,
        isr=[],
        leader=-1,
        leader_recovery_state=1,
        eligible_leader_replicas=[1],
        last_known_elr=[1],
    )
    add_records(fs, left)
    with running_broker(ROOT, fs=fs) as broker, RawClient(broker) as client:
        (described,) = describe_topic(client, "topic").partitions
        assert (described.leader_id, described.isr_nodes) == (1, [1])
        # One for the leader that left, one for the one that came.
        assert described.leader_epoch == 2
        assert describe_topic(client, "other").partitions[0].leader_epoch == 0
        assert broker.broker.partitions.find("topic", 0).log.high_watermark == 1
        (state,) = broker.broker.metadata.image.topics["topic"].partitions
        assert (
            state.leader_recovery_state,
            state.eligible_leader_replicas,
            state.last_known_elr,
        ) == (0, [], [])


def test_eligible_replicas_of_one_or_of_all_topics_are_cleared() -> None:
    fs = MemoryFileSystem()
    with running_broker(ROOT, fs=fs) as broker, RawClient(broker) as client:
        ids = {name: create_topic(client, name) for name in ("one", "two", "three")}
    for topic_id in ids.values():
        add_records(
            fs,
            PartitionChangeRecord(
                partition_id=0, topic_id=topic_id, eligible_leader_replicas=[2], last_known_elr=[3]
            ),
        )

    def eligible() -> list[str]:
        topics = MetadataStore(fs, ROOT).image.topics.values()
        return [
            topic.name for topic in topics if topic.partitions[0].eligible_leader_replicas == [2]
        ]

    assert eligible() == ["one", "two", "three"]
    add_records(fs, ClearElrRecord(topic_name="two"), ClearElrRecord(topic_name="no such"))
    assert eligible() == ["one", "three"]
    add_records(fs, ClearElrRecord(topic_name=""))
    assert eligible() == []


# --- transactions of the metadata ----------------------------------------------------------------


def topic(number: int) -> TopicRecord:
    return TopicRecord(name=f"topic-{number}", topic_id=UUID(int=1000 + number))


def test_only_a_transaction_that_has_ended_counts() -> None:
    fs = MemoryFileSystem()
    add_records(fs, BeginTransactionRecord(), topic(1), EndTransactionRecord(), topic(2))
    add_records(fs, BeginTransactionRecord(), topic(3), AbortTransactionRecord(), topic(4))
    add_records(fs, BeginTransactionRecord(), topic(5))
    for _ in range(2):
        assert list(MetadataStore(fs, ROOT).image.topics) == ["topic-1", "topic-2", "topic-4"]
        # Whoever leads next aborts what is open, and its own records count.
        add_records(fs, FeatureLevelRecord(name="group.version", feature_level=1))
        assert MetadataStore(fs, ROOT).image.features == {"group.version": 1}


# --- snapshots -----------------------------------------------------------------------------------


def test_the_newest_snapshot_stands_for_what_is_below_it() -> None:
    fs = MemoryFileSystem()
    older, newer = (
        f"{METADATA}/{5:020d}-{1:010d}.checkpoint",
        f"{METADATA}/{9:020d}-{2:010d}.checkpoint",
    )
    write_file(fs, older, data_batch([topic(1)]))
    write_file(fs, newer, data_batch([topic(2), topic(3)]))
    batches = [data_batch([topic(number)], number, 2) for number in (7, 8, 9)]
    write_file(fs, f"{METADATA}/{7:020d}.log", b"".join(batches))
    store = MetadataStore(fs, ROOT)
    assert list(store.image.topics) == ["topic-2", "topic-3", "topic-9"]
    assert store.quorum.epoch == 2


def test_a_gap_behind_the_snapshot_is_not_overlooked() -> None:
    fs = MemoryFileSystem()
    write_file(fs, f"{METADATA}/{5:020d}-{1:010d}.checkpoint", data_batch([topic(1)]))
    write_file(fs, f"{METADATA}/{7:020d}.log", data_batch([topic(7)], 7, 1))
    with pytest.raises(InconsistentDirectoryError, match="from 5 to 7 is missing"):
        MetadataStore(fs, ROOT)


def test_a_damaged_snapshot_is_not_taken_for_none() -> None:
    fs = MemoryFileSystem()
    content = data_batch([topic(1)])
    write_file(fs, f"{METADATA}/{5:020d}-{1:010d}.checkpoint", content[:-1] + b"\xff")
    with pytest.raises(CorruptFileError, match="checksum"):
        MetadataStore(fs, ROOT)


# --- what else Kafka's tools leave ---------------------------------------------------------------


def test_a_directory_that_was_formatted_begins_as_it_was_told() -> None:
    fs = MemoryFileSystem()
    told = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
    ]
    write_file(fs, f"{ROOT}/bootstrap.checkpoint", data_batch(told))
    for _ in range(2):
        start_and_stop(fs)
    image = MetadataStore(fs, ROOT).image
    # Nor does klamm add what was left out on purpose.
    assert image.features == {"metadata.version": 30, "transaction.version": 2}
    assert image.broker_configs("") == {"min.insync.replicas": "1"}


def test_a_directory_that_was_formatted_with_a_password_is_guarded() -> None:
    fs = MemoryFileSystem()
    start_and_stop(fs)
    fs.remove(SEGMENT)
    scram = UserScramCredentialRecord(name="me", mechanism=1)
    write_file(fs, f"{ROOT}/bootstrap.checkpoint", data_batch([scram]))
    before = fs.files()
    with pytest.raises(InconsistentDirectoryError, match="SCRAM"):
        RunningBroker(ROOT, fs=fs).start()
    assert fs.files() == before


def test_the_clean_stop_names_the_registration_of_kafka() -> None:
    fs = MemoryFileSystem()
    start_and_stop(fs)
    marker = f"{ROOT}/.kafka_cleanshutdown"
    assert json.loads(fs.files()[marker]) == {"version": 0, "brokerEpoch": -1}
    add_records(fs, RegisterBrokerRecord(broker_id=1, broker_epoch=14))
    start_and_stop(fs)
    assert json.loads(fs.files()[marker]) == {"version": 0, "brokerEpoch": 14}

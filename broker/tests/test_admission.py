"""Which metadata klamm goes on with, and that a directory it refuses is left as it was."""

from __future__ import annotations

from uuid import UUID

import pytest

from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.kraft import ROOT, add_records
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.errors import InconsistentDirectoryError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.stored.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from klamm.wire.schema import Message

TOPIC_ID = UUID(int=4711)
ACL = AccessControlEntryRecord(id=UUID(int=7), resource_name="topic")
SCRAM = UserScramCredentialRecord(name="me", mechanism=1)
TOKEN = DelegationTokenRecord(token_id="token")


def partition(replicas: list[int], directory: UUID) -> list[Message]:
    return [
        TopicRecord(name="topic", topic_id=TOPIC_ID),
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory] * len(replicas),
        ),
    ]


REFUSED: dict[str, tuple[list[Message], str]] = {
    "rights": ([ACL], "guarded by 1 access control entries"),
    "passwords": ([SCRAM], "guarded by 1 SCRAM credentials"),
    "tokens": ([TOKEN], "guarded by 1 delegation tokens"),
    "another broker": ([RegisterBrokerRecord(broker_id=7)], r"has other nodes \(7\)"),
    "more replicas": (partition([1, 2], UUID(int=0)), "topic-0 is on the nodes 1, 2"),
    "a newer Kafka": (
        [FeatureLevelRecord(name="metadata.version", feature_level=31)],
        "its metadata.version is 31, and klamm knows 30 to 30",
    ),
    "a setting of the broker": (
        [ConfigRecord(resource_type=4, name="num.network.threads", value="many")],
        "the broker's settings: num.network.threads",
    ),
    "records elsewhere": (
        [
            ConfigRecord(
                resource_type=2, resource_name="mine", name="remote.storage.enable", value="true"
            )
        ],
        "topic mine: remote.storage.enable=true is not supported",
    ),
}


@pytest.fixture
def fs() -> MemoryFileSystem:
    """A directory with a topic, stopped cleanly."""
    fs = MemoryFileSystem()
    with running_broker(ROOT, fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "mine")
    return fs


@pytest.mark.parametrize("why", REFUSED)
def test_refused_and_left_as_it_was(fs: MemoryFileSystem, why: str) -> None:
    records, reason = REFUSED[why]
    add_records(fs, *records)
    before = fs.files()
    with pytest.raises(InconsistentDirectoryError, match=f"^{ROOT} is left as it is: .*{reason}"):
        RunningBroker(ROOT, fs=fs).start()
    assert fs.files() == before


def test_what_was_taken_back_is_no_reason(fs: MemoryFileSystem) -> None:
    add_records(
        fs,
        *(ACL, SCRAM, TOKEN, RegisterBrokerRecord(broker_id=7)),
        RemoveAccessControlEntryRecord(id=ACL.id),
        RemoveUserScramCredentialRecord(name="me", mechanism=1),
        RemoveDelegationTokenRecord(token_id="token"),
        UnregisterBrokerRecord(broker_id=7),
    )
    with running_broker(ROOT, fs=fs) as broker:
        assert list(broker.broker.metadata.image.topics) == ["mine"]


def test_what_klamm_has_no_use_for_stays_in_the_log(fs: MemoryFileSystem) -> None:
    log = f"{ROOT}/__cluster_metadata-0/{0:020d}.log"
    add_records(
        fs,
        ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name=None)], key="rate"),
        FeatureLevelRecord(name="share.version", feature_level=1),
        RegisterControllerRecord(controller_id=1),
        NoOpRecord(),
    )
    before = fs.files()[log]
    with running_broker(ROOT, fs=fs) as broker, RawClient(broker) as client:
        create_topic(client, "another")
        reply = client.call(ApiVersionsRequest(), 4)
        # Listed is only what klamm does.
        finalized = {feature.name for feature in reply.finalized_features}
        assert finalized <= {feature.name for feature in reply.supported_features}
        assert len(broker.broker.metadata.image.client_quotas) == 1
    assert fs.files()[log].startswith(before)

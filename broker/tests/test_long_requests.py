"""One request with as much in it as the limits allow does not hold up the others.

The assertion is in conftest.py: after each test no step was longer than 50 ms of CPU time. Each of
these requests takes several times that to be read, handled and answered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from klamm.broker.fetching import ParkedFetch
from klamm.broker.metadata.topics import topic_records
from klamm.broker.replies import Pending
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawClient,
    batch,
    create_topic,
    delete_topic,
    fetch,
)
from klamm.broker.tests.waiting import until
from klamm.log.memory_fs import MemoryFileSystem
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from klamm.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from klamm.wire.messages.describe_producers import (
    DescribeProducersRequest,
)
from klamm.wire.messages.describe_producers import (
    TopicRequest as ProducersOfTopic,
)
from klamm.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from klamm.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from klamm.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from klamm.wire.messages.fetch import FetchRequest
from klamm.wire.messages.list_config_resources import ListConfigResourcesRequest
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from klamm.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from klamm.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from klamm.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from klamm.wire.schema import Message

# Just below klamm.request.items.max.
MANY = 49_000
NAMES = [f"topic-{number}" for number in range(MANY)]
NO_TIME = -1
TOPIC, BROKER = 2, 4


def metadata(names: list[str], **fields: bool) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def metadata_by_id() -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=uuid4()) for _ in NAMES]
    )


def create_topics(names: list[str], partitions: int = 1, **fields: bool) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ],
        timeout_ms=10_000,
        **fields,
    )


def delete_topics(timeout_ms: int = 10_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in NAMES], timeout_ms=timeout_ms
    )


def create_partitions(timeout_ms: int = 10_000, **fields: bool) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=2, assignments=None) for name in NAMES],
        timeout_ms=timeout_ms,
        **fields,
    )


def describe_configs(names: list[str], kind: int = TOPIC, **fields: bool) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name) for name in names
        ],
        **fields,
    )


def describe_topics(names: list[str]) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names])


def describe_log_dirs() -> DescribeLogDirsRequest:
    topics = [DescribableLogDirTopic(topic=name, partitions=[0]) for name in NAMES[: MANY // 2]]
    return DescribeLogDirsRequest(topics=topics)


def describe_producers(topic: str) -> DescribeProducersRequest:
    indexes = list(range(MANY))
    return DescribeProducersRequest(
        topics=[ProducersOfTopic(name=topic, partition_indexes=indexes)]
    )


def alter_reassignments(timeout_ms: int = 10_000) -> AlterPartitionReassignmentsRequest:
    # A partition counts twice: itself, and its replica.
    partitions = [
        ReassignablePartition(partition_index=index, replicas=[1]) for index in range(MANY // 2)
    ]
    topic = ReassignableTopic(name="topic", partitions=partitions)
    return AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=timeout_ms)


def list_reassignments() -> ListPartitionReassignmentsRequest:
    topic = ListPartitionReassignmentsTopics(name="topic", partition_indexes=list(range(MANY)))
    return ListPartitionReassignmentsRequest(topics=[topic])


def elect_leaders(timeout_ms: int = 10_000) -> ElectLeadersRequest:
    topic = TopicPartitions(topic="topic", partitions=list(range(MANY)))
    return ElectLeadersRequest(topic_partitions=[topic], timeout_ms=timeout_ms)


def describe_quorum() -> DescribeQuorumRequest:
    partitions = [RequestPartitionData(partition_index=index) for index in range(MANY)]
    return DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name="topic", partitions=partitions)]
    )


def update_features() -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature="group.version", max_version_level=1)
    return UpdateFeaturesRequest(feature_updates=[update] * MANY)


def alter_log_dirs() -> AlterReplicaLogDirsRequest:
    topic = AlterReplicaLogDirTopic(name="topic", partitions=list(range(MANY)))
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/other", topics=[topic])])


def list_offsets(isolation_level: int = 0) -> ListOffsetsRequest:
    partitions = [
        ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(MANY)
    ]
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name="topic", partitions=partitions)],
    )


def epochs() -> OffsetForLeaderEpochRequest:
    partitions = [OffsetForLeaderPartition(partition=index) for index in range(MANY)]
    topic = OffsetForLeaderTopic(topic="topic", partitions=partitions)
    return OffsetForLeaderEpochRequest(topics=[topic])


def produce_to_many() -> ProduceRequest:
    records = batch()
    data = [PartitionProduceData(index=index, records=records) for index in range(MANY)]
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(name="topic", partition_data=data)])


def fetch_with_session() -> FetchRequest:
    request = fetch("topic", partitions=tuple(range(MANY)))
    request.session_epoch = 0
    return request


@pytest.fixture
def small() -> Iterator[RawClient]:
    """A client of a broker with one topic."""
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        create_topic(client, "topic")
        yield client


# How each request is made, and its version.
GREATEST: dict[str, tuple[Callable[[], Message], int]] = {
    "Metadata": (lambda: metadata(NAMES, allow_auto_topic_creation=False), 13),
    "Metadata of illegal names": (lambda: metadata([f"{name}?" for name in NAMES]), 13),
    "Metadata of too many to create": (lambda: metadata(NAMES), 13),
    "Metadata of ids": (metadata_by_id, 13),
    "Metadata, refused": (metadata_by_id, 11),
    "CreateTopics": (lambda: create_topics(NAMES[:10_000], validate_only=True), 7),
    "CreateTopics of too many": (lambda: create_topics(NAMES), 7),
    "CreateTopics of each twice": (lambda: create_topics(NAMES[: MANY // 2] * 2), 7),
    "CreateTopics, refused": (lambda: create_topics(NAMES, partitions=0), 7),
    "CreatePartitions": (create_partitions, 3),
    "CreatePartitions, too late": (lambda: create_partitions(NO_TIME), 3),
    "DeleteTopics": (delete_topics, 6),
    "DeleteTopics, too late": (lambda: delete_topics(NO_TIME), 6),
    "DeleteTopics of names": (lambda: DeleteTopicsRequest(topic_names=NAMES, timeout_ms=9000), 5),
    "DescribeTopicPartitions": (lambda: describe_topics(NAMES), 0),
    "DescribeConfigs": (lambda: describe_configs(NAMES), 4),
    "DescribeConfigs, refused": (lambda: describe_configs(NAMES, kind=3), 4),
    "DescribeConfigs of one topic": (
        lambda: describe_configs(["topic"] * 4000, include_documentation=True),
        4,
    ),
    "DescribeConfigs of the broker": (lambda: describe_configs(["1"] * 400, BROKER), 4),
    "DescribeLogDirs": (describe_log_dirs, 5),
    "DescribeProducers": (lambda: describe_producers("topic"), 0),
    "DescribeProducers, refused": (lambda: describe_producers("missing"), 0),
    "AlterPartitionReassignments": (alter_reassignments, 1),
    "AlterPartitionReassignments, too late": (lambda: alter_reassignments(NO_TIME), 1),
    "ListPartitionReassignments": (list_reassignments, 0),
    "ElectLeaders": (elect_leaders, 2),
    "ElectLeaders, too late": (lambda: elect_leaders(NO_TIME), 2),
    "DescribeQuorum": (describe_quorum, 2),
    "UpdateFeatures": (update_features, 1),
    "AlterReplicaLogDirs": (alter_log_dirs, 2),
    "OffsetForLeaderEpoch": (epochs, 4),
    "ListOffsets": (list_offsets, 8),
    "ListOffsets, refused": (lambda: list_offsets(isolation_level=7), 8),
    "Fetch": (lambda: fetch("topic", partitions=tuple(range(MANY))), FETCH_VERSION),
    "Fetch with a session": (fetch_with_session, FETCH_VERSION),
    "Produce": (produce_to_many, PRODUCE_VERSION),
}


@pytest.mark.parametrize("case", GREATEST)
def test_a_request_of_the_greatest_size(small: RawClient, case: str) -> None:
    make, version = GREATEST[case]
    is_answered(small, make(), version)


def is_answered(client: RawClient, request: Message, version: int) -> None:
    client.socket.sendall(client.frame(request, version))
    client.receive_frame()
    # The step that sent the reply has ended, too, when this is answered.
    client.call(ApiVersionsRequest())


@pytest.fixture
def large() -> Iterator[RawClient]:
    """A client of a broker that knows 10,000 topics, whose partitions it does not lead."""
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        image = broker.broker.metadata.image
        for name in NAMES[:10_000]:
            for record in topic_records(name, uuid4(), [[1]], {}, lambda: UUID(int=1)):
                image.replay(record)
        yield client


MANY_TOPICS: dict[str, tuple[Callable[[], Message], int]] = {
    "Metadata": (lambda: MetadataRequest(topics=None), 13),
    "Metadata of names": (lambda: metadata(NAMES[:10_000]), 13),
    "DescribeConfigs": (lambda: describe_configs(NAMES[:4000]), 4),
    "DescribeTopicPartitions": (lambda: describe_topics([]), 0),
    "CreatePartitions": (lambda: create_partitions(validate_only=True), 3),
    "ElectLeaders": (lambda: ElectLeadersRequest(topic_partitions=None), 2),
    "ListConfigResources": (ListConfigResourcesRequest, 1),
    "DeleteTopics": (delete_topics, 6),
}


@pytest.mark.parametrize("case", MANY_TOPICS)
def test_a_request_about_many_topics(large: RawClient, case: str) -> None:
    make, version = MANY_TOPICS[case]
    is_answered(large, make(), version)


def test_many_partitions_that_are_made_grown_filled_awaited_and_deleted() -> None:
    with running_broker(fs=MemoryFileSystem()) as broker, RawClient(broker) as client:
        create_topic(client, "topic", 4000)
        grown = client.call(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="topic", count=5000, assignments=None)],
                timeout_ms=10_000,
            )
        )
        assert [result.error_code for result in grown.results] == [0]
        with RawClient(broker) as consumer:
            # It asks for more than there will be, so that each of the 5000 is read again.
            everything = fetch(
                "topic", partitions=tuple(range(5000)), max_wait_ms=60_000, min_bytes=1 << 30
            )
            consumer.send(everything, version=FETCH_VERSION)
            last = broker.broker.partitions.get("topic", 4999)
            assert last is not None
            until(lambda: bool(last.parked))
            data = [PartitionProduceData(index=index, records=batch()) for index in range(5000)]
            produced = client.call(
                ProduceRequest(
                    acks=1, topic_data=[TopicProduceData(name="topic", partition_data=data)]
                ),
                PRODUCE_VERSION,
            )
            results = produced.responses[0].partition_responses
            assert {result.error_code for result in results} == {ErrorCode.NONE}
            # All of it is read before the topic goes: what is read later could not be sent from
            # this file system.
            (parked,) = last.parked
            assert isinstance(parked, ParkedFetch)
            until(lambda: not (parked._queued or parked._is_reading))
            delete_topic(client, "topic")
            fetched = consumer.receive()[1].responses[0].partitions
            assert {result.error_code for result in fetched} == {
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            }


def test_topics_that_are_made_on_the_way(small: RawClient) -> None:
    response = small.call(metadata(NAMES[:3000]), 13)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.NONE}
    assert {len(topic.partitions) for topic in response.topics} == {1}


def test_no_topic_is_made_on_the_way_when_they_are_too_many(small: RawClient) -> None:
    """As in Kafka, where they are one CreateTopics, which may not have more partitions."""
    response = small.call(metadata(NAMES[:10_001]), 13)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert [topic.name for topic in small.call(MetadataRequest(topics=None), 13).topics] == [
        "topic"
    ]


def test_tagged_fields_that_nobody_knows(small: RawClient) -> None:
    """They are passed over, and that takes its time, too."""
    topics = 2000
    request = metadata(["topic"] * topics, allow_auto_topic_creation=False)
    plain = small.frame(request, 12)
    # A topic is its id, its name and an empty tagged section.
    topic = bytes(16) + b"\x06topic" + b"\x00"
    tagged = topic[:-1] + b"\x80\x02" + b"\x64\x00" * 256
    assert plain.count(topic) == topics
    body = plain[4:].replace(topic, tagged)
    small.socket.sendall(len(body).to_bytes(4, "big") + body)
    (described,) = small.receive()[1].topics
    assert described.error_code == ErrorCode.NONE


def test_a_long_request_that_is_malformed_closes_the_connection(
    small: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    plain = small.frame(metadata(NAMES[:5000]), 13)
    body = plain[4:-1]
    small.socket.sendall(len(body).to_bytes(4, "big") + body)
    assert small.is_closed_by_peer()
    assert "unreadable request: MetadataRequest v13: " in caplog.text


def test_bytes_behind_a_long_request_are_passed_over(small: RawClient) -> None:
    plain = small.frame(metadata(NAMES[:5000]), 13)
    body = plain[4:] + b"\0\0\0"
    small.socket.sendall(len(body).to_bytes(4, "big") + body)
    assert len(small.receive()[1].topics) == 5000


@pytest.mark.parametrize("items_max", [10, 5000])
def test_more_items_than_may_be_close_the_connection(
    items_max: int, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {"klamm.request.items.max": str(items_max), "auto.create.topics.enable": "false"}
    fs = MemoryFileSystem()
    with running_broker(properties=properties, fs=fs) as broker, RawClient(broker) as client:
        assert len(client.call(metadata(NAMES[:items_max]), 13).topics) == items_max
        client.send(metadata(NAMES[: items_max + 1]), version=13)
        assert client.is_closed_by_peer()
    assert "over its budget of array items" in caplog.text


def fail_at_once(request: Any, context: Any) -> Any:
    raise ValueError("on purpose")


def fail_later(request: Any, context: Any) -> Any:
    pending: Pending[Any] = Pending()
    context.broker.timers.call_after(0, lambda: pending.fail(ValueError("on purpose")))
    return pending


def answer_nonsense(request: Any, context: Any) -> Any:
    return MetadataResponse(topics=[object()])  # type: ignore[list-item] # on purpose


@pytest.mark.parametrize("handle", [fail_at_once, fail_later, answer_nonsense])
def test_a_long_request_whose_handler_fails_is_answered(
    broker: RunningBroker, client: RawClient, handle: Callable[[Any, Any], Any]
) -> None:
    """A fault in the broker does not leave the client waiting, whenever it shows."""
    routes = broker.broker.dispatcher.routes
    routes[3] = dataclasses.replace(routes[3], handle=handle)
    response = client.call(metadata(NAMES[:5000]), 13)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

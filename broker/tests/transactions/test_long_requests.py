"""Transactions over very many partitions, and very many ids: nobody else waits.

The assertion that counts is in the conftest.py above: no step of the loop was longer than 50 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klamm.broker.metadata.image import TopicState
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.broker.tests.transactions.transactional_client import Producer
from klamm.broker.tests.waiting import until
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from klamm.wire.messages.describe_transactions import DescribeTransactionsRequest
from klamm.wire.messages.list_transactions import ListTransactionsRequest
from klamm.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

MANY = 20_000


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        yield connected


@pytest.fixture
def wide_topic(broker: RunningBroker, client: RawClient) -> str:
    """A topic whose partitions exist in the metadata alone: files are not the point."""
    create_topic(client, "wide")
    topic: TopicState = broker.broker.metadata.image.topics["wide"]
    topic.partitions = topic.partitions * MANY
    return topic.name


def test_a_transaction_over_very_many_partitions(client: RawClient, wide_topic: str) -> None:
    producer = Producer(client)
    producer.init()
    assert producer.add(wide_topic, *range(MANY)) is ErrorCode.NONE
    (topic,) = producer.describe().topics
    assert topic.partitions == list(range(MANY))
    assert producer.end() is ErrorCode.NONE
    until(lambda: producer.state == "CompleteCommit")


def test_very_many_partitions_are_verified(client: RawClient, wide_topic: str) -> None:
    producer = Producer(client)
    producer.init()
    topic = AddPartitionsToTxnTopic(name=wide_topic, partitions=list(range(MANY)))
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=True,
        topics=[topic],
    )
    response = client.call(AddPartitionsToTxnRequest(transactions=[transaction]), 5)
    (result,) = response.results_by_transaction[0].topic_results
    codes = {one.partition_error_code for one in result.results_by_partition}
    assert codes == {ErrorCode.TRANSACTION_ABORTABLE}


def test_very_many_markers(client: RawClient, wide_topic: str) -> None:
    topics = [WritableTxnMarkerTopic(name=wide_topic, partition_indexes=list(range(MANY)))]
    marker = WritableTxnMarker(producer_id=5, producer_epoch=0, topics=topics)
    response = client.call(WriteTxnMarkersRequest(markers=[marker]), 2)
    (topic,) = response.markers[0].topics
    assert len(topic.partitions) == MANY


def test_very_many_ids(client: RawClient) -> None:
    Producer(client).init()
    names = [f"id-{number}" for number in range(MANY)]
    response = client.call(DescribeTransactionsRequest(transactional_ids=names), 0)
    assert len(response.transaction_states) == MANY
    request = ListTransactionsRequest(
        state_filters=names, producer_id_filters=[], transactional_id_pattern="t.*"
    )
    assert len(client.call(request, 2).unknown_state_filters) == MANY

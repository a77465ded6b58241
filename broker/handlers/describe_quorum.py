"""DescribeQuorum (key 55): who keeps the metadata log, and how far they are.

Versions 0-2.

Promise: this broker is the only voter and leads; it has all of `__cluster_metadata`. A request
names that topic with its one partition and nothing else; otherwise all that it names is unknown
(KIP-595).

Version by version: 1 when replicas fetched last (KIP-836) · 2 messages, directory ids and the
addresses of voters (KIP-853).

Deviation: there is no listener for controllers only; the address is that of the listener through
which the client came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

API_KEY = 55
VERSIONS = (0, 2)

METADATA_PARTITION = 0


def handle(
    request: DescribeQuorumRequest, context: RequestContext
) -> Steps[DescribeQuorumResponse]:
    if not asks_for_metadata(request):
        message = "There is no quorum but that of the metadata log."
        return (
            yield from refuse_partitions(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        )
    broker = context.broker
    host, port = broker.advertised_address(context.connection)
    listener = Listener(name=context.connection.listener_name, host=host, port=port)
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[quorum(broker)])],
        nodes=[Node(node_id=broker.node_id, listeners=[listener])],
    )


def asks_for_metadata(request: DescribeQuorumRequest) -> bool:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return False
    (topic,) = request.topics
    (partition,) = topic.partitions
    return topic.topic_name == METADATA_TOPIC and partition.partition_index == METADATA_PARTITION


def quorum(broker: Broker) -> ResponsePartitionData:
    log = broker.metadata.log
    now_ms = broker.clock.now_ms()
    voter = ReplicaState(
        replica_id=broker.node_id,
        replica_directory_id=broker.logs.metadata.directory_id,
        log_end_offset=log.log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=broker.node_id,
        leader_epoch=log.latest_epoch,
        high_watermark=log.high_watermark,
        current_voters=[voter],
    )


def error_response(request: DescribeQuorumRequest, code: ErrorCode) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=code, error_message=None)


def refuse_partitions(
    request: DescribeQuorumRequest, code: ErrorCode, message: str
) -> Stepwise[DescribeQuorumResponse]:
    response = DescribeQuorumResponse()
    for topic in request.topics:
        result = ResponseTopicData(topic_name=topic.topic_name)
        response.topics.append(result)
        yield None
        for partition in topic.partitions:
            result.partitions.append(
                ResponsePartitionData(
                    partition_index=partition.partition_index,
                    error_code=code,
                    error_message=message,
                )
            )
            yield None
    return response

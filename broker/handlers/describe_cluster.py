"""DescribeCluster (key 60): the brokers of this cluster.

Versions 0-2.

Promise: this broker, under the address that its clients can reach. Controllers are not a listener
of their own here, so asking for them is answered as a broker of Kafka answers it.

Version by version: 1 endpoint type · 2 fenced brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.authorized_operations import CLUSTER_OPERATIONS
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 60
VERSIONS = (0, 2)

BROKERS, CONTROLLERS = 1, 2


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return error_response(request, ErrorCode.MISMATCHED_ENDPOINT_TYPE)
    if request.endpoint_type != BROKERS:
        return error_response(request, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
    broker = context.broker
    host, port = broker.advertised_address(context.connection)
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id, host=host, port=port, rack=broker.config.broker_rack
            )
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def error_response(request: DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=code, error_message=code.name.replace("_", " ").lower()
    )

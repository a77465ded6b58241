"""ListConfigResources (key 74): what has settings, by kind.

Versions 0-1.

Promise: all topics, this broker and its loggers; of groups and client metrics those whose settings
somebody has changed. No kind at all asks for every kind; one without settings refuses the request.

Version by version: 0 client metrics only (KIP-714) · 1 the kinds that are asked for (KIP-1142).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klamm.broker.metadata.image import ResourceType
from klamm.broker.replies import Steps
from klamm.broker.steps import collect
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

API_KEY = 74
VERSIONS = (0, 1)


def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> Steps[ListConfigResourcesResponse]:
    if context.api_version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    else:
        wanted = set(request.resource_types or ResourceType)
    if not wanted.issubset(ResourceType):
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION)
    response = ListConfigResourcesResponse()
    for resource_type in sorted(wanted):
        response.config_resources += yield from collect(
            ConfigResource(resource_name=name, resource_type=resource_type)
            for name in names(resource_type, context.broker)
        )
    return response


def names(resource_type: int, broker: Broker) -> Iterable[str]:
    image = broker.metadata.image
    if resource_type == ResourceType.TOPIC:
        return list(image.topics)
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.node_id)]
    return image.configured(resource_type)


def error_response(
    request: ListConfigResourcesRequest, code: ErrorCode
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code)

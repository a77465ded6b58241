"""DescribeConfigs (key 32): settings with their values, where those come from, and what they mean.

Versions 1-4.

Promise: every setting of a resource, also one that klamm accepts and does not use (its
documentation says so); the value of a secret is never in a reply. `configuration_keys` narrows the
list; null and empty both ask for all. A resource of a type that has no settings makes the whole
request invalid, any other mistake only its own resource.

Version by version: 2 throttling after the reply · 3 types and documentation · 4 flexible.

Deviation: a request whose answer would have more than 200,000 entries (all configs of about 6,000
topics) is refused, because every reply is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from klamm.broker.config.describe import (
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from klamm.broker.config.entry import ConfigEntry
from klamm.broker.config.errors import ConfigError
from klamm.broker.config.loggers import describe_loggers
from klamm.broker.metadata.image import ResourceType
from klamm.broker.metadata.resources import check_broker_id, check_named
from klamm.broker.metadata.topics import Refused, check_topic_name
from klamm.broker.replies import Steps
from klamm.broker.steps import Stepwise, collect
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.context import RequestContext

API_KEY = 32
VERSIONS = (1, 4)

ENTRIES_MAX = 200_000
TOO_MUCH = f"The reply would have more than {ENTRIES_MAX} entries; ask for fewer resources at once."
UNKNOWN_TYPE = "A resource has a type without settings, so the whole request is invalid."


def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> Steps[DescribeConfigsResponse]:
    if any(resource.resource_type not in DESCRIBERS for resource in request.resources):
        return (yield from refuse_all(request, ErrorCode.INVALID_REQUEST, UNKNOWN_TYPE))
    description = Description(request, context.broker)
    results = []
    for resource in request.resources:
        results.append((yield from description.result(resource)))
        if description.entry_count > ENTRIES_MAX:
            return (yield from refuse_all(request, ErrorCode.INVALID_REQUEST, TOO_MUCH))
    return DescribeConfigsResponse(results=results)


class Description:
    """What one request asks for, in the form of the reply."""

    def __init__(self, request: DescribeConfigsRequest, broker: Broker) -> None:
        self._request = request
        self._broker = broker
        # Most topics set nothing, so many resources share most of their entries.
        self._shaped: dict[ConfigEntry, DescribeConfigsResourceResult] = {}
        self.entry_count = 0

    def result(self, resource: DescribeConfigsResource) -> Stepwise[DescribeConfigsResult]:
        yield None
        try:
            entries = DESCRIBERS[resource.resource_type](resource.resource_name, self._broker)
        except Refused as refused:
            return refusal(resource, refused.code, refused.message)
        except ConfigError as error:
            # Stored by another broker with other rules.
            return refusal(resource, ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        wanted = resource.configuration_keys
        if wanted:
            names = frozenset(wanted)
            entries = [entry for entry in entries if entry.name in names]
        self.entry_count += len(entries)
        return DescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(yield from collect(map(self._shape, entries))),
        )

    def _shape(self, entry: ConfigEntry) -> DescribeConfigsResourceResult:
        shaped = self._shaped.get(entry)
        if shaped is None:
            shaped = self._shaped[entry] = DescribeConfigsResourceResult(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.config_source,
                is_sensitive=entry.is_sensitive,
                config_type=entry.config_type,
                documentation=self._documentation(entry),
            )
            if self._request.include_synonyms:
                shaped.synonyms = [
                    DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
                    for one in entry.synonyms
                ]
        return shaped

    def _documentation(self, entry: ConfigEntry) -> str | None:
        # An empty text is what Kafka sends for a logger, asked or not.
        if self._request.include_documentation or entry.documentation == "":
            return entry.documentation
        return None


def topic(name: str, broker: Broker) -> Sequence[ConfigEntry]:
    check_topic_name(name)
    image = broker.metadata.image
    if image.topic(name) is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return describe_topic(broker.config, image.topic_configs(name))


def one_broker_or_all(name: str, broker: Broker) -> Sequence[ConfigEntry]:
    if not name:
        return describe_broker_defaults(broker.config)
    check_broker_id(name, broker.node_id)
    return describe_broker(broker.config)


def broker_logger(name: str, broker: Broker) -> Sequence[ConfigEntry]:
    check_broker_id(name, broker.node_id)
    return describe_loggers()


def client_metrics(name: str, broker: Broker) -> Sequence[ConfigEntry]:
    check_named(name, "client metrics subscription")
    return describe_client_metrics(stored_configs(ResourceType.CLIENT_METRICS, name, broker))


def group(name: str, broker: Broker) -> Sequence[ConfigEntry]:
    check_named(name, "group")
    return describe_group(broker.config, stored_configs(ResourceType.GROUP, name, broker))


DESCRIBERS: Mapping[int, Callable[[str, Broker], Sequence[ConfigEntry]]] = {
    ResourceType.TOPIC: topic,
    ResourceType.BROKER: one_broker_or_all,
    ResourceType.BROKER_LOGGER: broker_logger,
    ResourceType.CLIENT_METRICS: client_metrics,
    ResourceType.GROUP: group,
}


def stored_configs(resource_type: int, name: str, broker: Broker) -> Mapping[str, str]:
    return broker.metadata.image.resource_configs(resource_type, name)


def refusal(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def error_response(request: DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse:
    return run_inline(refuse_all(request, code))


def refuse_all(
    request: DescribeConfigsRequest, code: ErrorCode, message: str | None = None
) -> Stepwise[DescribeConfigsResponse]:
    refused = (refusal(resource, code, message) for resource in request.resources)
    return DescribeConfigsResponse(results=(yield from collect(refused)))

"""The handler of DescribeConfigs: resources, filters, what is left out, and its limit."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from klamm.broker.config import load
from klamm.broker.handlers import describe_configs
from klamm.broker.metadata.image import MetadataImage
from klamm.log.work import run_inline
from klamm.wire.codec import encode
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from klamm.wire.messages.stored.metadata import ConfigRecord, TopicRecord

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def ask(*resources: tuple[int, str, list[str] | None], **fields: Any) -> DescribeConfigsResponse:
    """Asks a broker with the id 1, one topic, one group and one subscription."""
    image = MetadataImage()
    image.replay(TopicRecord(name="topic", topic_id=UUID(int=7)))
    for kind, name, key, value in (
        (TOPIC, "topic", "retention.ms", "5"),
        (TOPIC, "damaged", "retention.ms", "soon"),
        (GROUP, "group", "consumer.session.timeout.ms", "46000"),
        (METRICS, "subscription", "interval.ms", "100"),
    ):
        image.replay(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    image.replay(TopicRecord(name="damaged", topic_id=UUID(int=8)))
    broker = SimpleNamespace(
        config=load(None, {"num.partitions": "3"}),
        node_id=1,
        metadata=SimpleNamespace(image=image),
    )
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        ],
        **fields,
    )
    context: Any = SimpleNamespace(broker=broker)
    response = run_inline(describe_configs.handle(request, context))
    assert isinstance(response, DescribeConfigsResponse)
    return response


def only(response: DescribeConfigsResponse) -> DescribeConfigsResult:
    (result,) = response.results
    return result


def values(result: DescribeConfigsResult) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in result.configs}


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (TOPIC, "topic", "retention.ms", "5"),
        (BROKER, "1", "num.partitions", "3"),
        (BROKER, "+01", "num.partitions", "3"),
        (GROUP, "group", "consumer.session.timeout.ms", "46000"),
        (GROUP, "never heard of", "consumer.session.timeout.ms", "45000"),
        (METRICS, "subscription", "interval.ms", "100"),
    ],
)
def test_each_kind_of_resource(kind: int, name: str, key: str, value: str) -> None:
    result = only(ask((kind, name, [key])))
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert values(result) == {key: value}


def test_loggers() -> None:
    result = only(ask((LOGGER, "1", ["root", "klamm.broker.handlers"])))
    assert "root" in values(result)
    assert [entry.documentation for entry in result.configs] == [""] * len(result.configs)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "damaged", ErrorCode.UNKNOWN_SERVER_ERROR),
        *(
            (BROKER, name, ErrorCode.INVALID_REQUEST)
            for name in ("2", "-1", "x", " 1", "1_0", "1.0")
        ),
        *((LOGGER, name, ErrorCode.INVALID_REQUEST) for name in ("", "2", "x", "1" * 5000)),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_mistake_is_that_of_its_resource_only(kind: int, name: str, code: ErrorCode) -> None:
    wrong, right = ask((kind, name, None), (TOPIC, "topic", None)).results
    assert wrong.error_code == code
    assert wrong.configs == []
    assert wrong.error_message is not None
    assert len(wrong.error_message) < 400
    assert right.error_code == ErrorCode.NONE


@pytest.mark.parametrize("kind", [0, 1, 3, 64, 127, -1, -128])
def test_an_unknown_type_makes_the_whole_request_invalid(kind: int) -> None:
    results = ask((TOPIC, "topic", None), (kind, "x", None)).results
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert [(result.resource_type, result.resource_name) for result in results] == [
        (TOPIC, "topic"),
        (kind, "x"),
    ]
    assert all(result.error_message and not result.configs for result in results)


def test_filters() -> None:
    everything = values(only(ask((TOPIC, "topic", None))))
    assert len(everything) == 34
    assert values(only(ask((TOPIC, "topic", [])))) == everything
    asked = ["segment.ms", "no.such", "segment.ms", "retention.ms"]
    some = only(ask((TOPIC, "topic", asked)))
    assert [entry.name for entry in some.configs] == ["retention.ms", "segment.ms"]


def test_what_is_told_only_when_it_is_asked() -> None:
    for synonyms in (False, True):
        for documentation in (False, True):
            (entry,) = only(
                ask(
                    (BROKER, "1", ["num.partitions"]),
                    include_synonyms=synonyms,
                    include_documentation=documentation,
                )
            ).configs
            assert [one.value for one in entry.synonyms] == (["3", "1"] if synonyms else [])
            assert (entry.documentation is not None) == documentation


def test_the_same_resource_twice_is_answered_twice() -> None:
    first, second = ask((TOPIC, "topic", None), (TOPIC, "topic", None)).results
    assert values(first) == values(second)


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_can_be_encoded(version: int) -> None:
    response = ask(
        *((TOPIC, "topic", None), (TOPIC, "", None), (BROKER, "1", None), (BROKER, "", None)),
        *((LOGGER, "1", None), (GROUP, "group", None), (METRICS, "subscription", None)),
        include_synonyms=True,
        include_documentation=True,
    )
    assert len(encode(response, version)) > 10_000


def test_a_reply_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_configs, "ENTRIES_MAX", 3 * 34)
    within = [(TOPIC, "topic", None)] * 3
    assert {result.error_code for result in ask(*within).results} == {ErrorCode.NONE}
    beyond = ask(*within, (TOPIC, "topic", ["segment.ms"])).results
    assert [result.error_code for result in beyond] == [ErrorCode.INVALID_REQUEST] * 4
    assert not any(result.configs for result in beyond)


@pytest.mark.parametrize("name", ["x", "1"])
def test_many_resources_let_others_have_their_turn(name: str) -> None:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name)
    broker = SimpleNamespace(config=load(None, {}), node_id=1)
    context: Any = SimpleNamespace(broker=broker)
    request = DescribeConfigsRequest(resources=[resource] * 100)
    turns = sum(1 for _ in describe_configs.handle(request, context))
    assert turns >= (100 if name == "x" else 10_000)


def test_the_same_refusal_for_everything() -> None:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name="topic")]
    )
    result = only(describe_configs.error_response(request, ErrorCode.REQUEST_TIMED_OUT))
    assert (result.error_code, result.resource_name) == (ErrorCode.REQUEST_TIMED_OUT, "topic")

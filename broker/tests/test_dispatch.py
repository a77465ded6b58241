"""Whatever a handler does, its client gets an answer and the broker goes on."""

from __future__ import annotations

import dataclasses
import logging
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from klamm.broker.broker import BrokerHaltedError
from klamm.broker.connection import FRAME_SIZE
from klamm.broker.dispatch import encode_reply
from klamm.broker.handlers import Route, load_routes
from klamm.broker.replies import Pending
from klamm.broker.testing import RunningBroker, running_broker
from klamm.broker.tests.raw_client import (
    PRODUCE_VERSION,
    RawClient,
    create_topic,
    frame,
    produce,
    produce_to,
    read_reply,
)
from klamm.log.layout import CLEAN_SHUTDOWN_FILE
from klamm.log.open_files import FileSlice
from klamm.wire.codec import decode
from klamm.wire.errors import ErrorCode
from klamm.wire.header import RequestHeader
from klamm.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from klamm.wire.registry import VERSION_BOUNDS, api
from klamm.wire.schema import Message, Struct
from klamm.wire.tests.samples import full_message

ROUTES = load_routes()
EVERY_VERSION = [
    (route, version)
    for route in ROUTES.values()
    for version in range(route.min_version, route.max_version + 1)
]
every_version = pytest.mark.parametrize(
    ("route", "version"),
    EVERY_VERSION,
    ids=[f"{route.name}-v{version}" for route, version in EVERY_VERSION],
)
every_route = pytest.mark.parametrize(
    "route", ROUTES.values(), ids=[route.name for route in ROUTES.values()]
)


def codes_in(value: object) -> Iterator[int]:
    """Every error code in a response, however deep."""
    if isinstance(value, Struct):
        for declared in value.FIELDS:
            inner = getattr(value, declared.name)
            if declared.name.endswith("error_code"):
                yield inner
            yield from codes_in(inner)
    elif isinstance(value, list):
        for item in value:
            yield from codes_in(item)


def reencoded(route: Route, version: int, response: Message) -> Any:
    """The response as a client reads it."""
    header = RequestHeader(route.api_key, version, 7, None)
    reply = b"".join(encode_reply(header, response))
    assert FRAME_SIZE.unpack_from(reply) == (len(reply) - 4,)
    correlation_id, decoded = read_reply(route.request, version, reply[4:])
    assert correlation_id == 7
    return decoded


@every_version
def test_every_api_can_say_that_it_failed(route: Route, version: int) -> None:
    request = full_message(route.request, version)
    response = route.error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    codes = set(codes_in(reencoded(route, version, response)))
    assert ErrorCode.UNKNOWN_SERVER_ERROR in codes
    assert codes <= {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE}


@every_version
def test_every_api_can_fail_an_empty_request(route: Route, version: int) -> None:
    response = route.error_response(empty_request(route), ErrorCode.NOT_CONTROLLER)
    reencoded(route, version, response)


def empty_request(route: Route) -> Any:
    request: Any = route.request()
    if route.name == "Produce":
        # With acks=0, which is the default, there would be no reply.
        request.acks = 1
    return request


def test_every_empty_request_is_answered(broker: RunningBroker, client: RawClient) -> None:
    for route, version in EVERY_VERSION:
        client.call(empty_request(route), version)
    assert broker.broker.dispatcher.handler_failures == 0


def use_handler(broker: RunningBroker, name: str, handle: Callable[[Any, Any], Any]) -> None:
    """Replace the handler of one API."""
    routes = broker.broker.dispatcher.routes
    (route,) = (each for each in routes.values() if each.name == name)
    routes[route.api_key] = dataclasses.replace(route, handle=handle)


def fail_at_once(request: Any, context: Any) -> Any:
    raise ValueError("on purpose")


async def fail_in_a_task(request: Any, context: Any) -> Any:
    raise ValueError("on purpose")


def fail_later(request: Any, context: Any) -> Any:
    pending: Pending[Any] = Pending()
    context.broker.timers.call_after(0, lambda: pending.fail(ValueError("on purpose")))
    return pending


def answer_nonsense(request: Any, context: Any) -> Any:
    return ApiVersionsResponse(error_code="no number")  # type: ignore[arg-type] # on purpose


async def answer_nonsense_in_a_task(request: Any, context: Any) -> Any:
    return object()


@pytest.mark.parametrize(
    "handle",
    [fail_at_once, fail_in_a_task, fail_later, answer_nonsense, answer_nonsense_in_a_task],
)
def test_a_handler_that_fails_is_answered_for_in_every_api_and_version(
    broker: RunningBroker, handle: Callable[[Any, Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    for route in ROUTES.values():
        use_handler(broker, route.name, handle)
    with RawClient(broker) as client:
        for route, version in EVERY_VERSION:
            response = client.call(full_message(route.request, version), version)
            assert ErrorCode.UNKNOWN_SERVER_ERROR in codes_in(response), (route.name, version)
    assert broker.broker.dispatcher.handler_failures == len(EVERY_VERSION)
    # One line with a traceback for each; nothing of it goes to the client.
    assert len(caplog.records) == len(EVERY_VERSION)
    assert all(record.exc_info is not None for record in caplog.records)


@every_route
def test_others_do_not_notice_that_a_handler_fails(
    broker: RunningBroker, client: RawClient, route: Route
) -> None:
    create_topic(client, "topic")
    with RawClient(broker) as other:
        produce_to(other, "topic")
        original = broker.broker.dispatcher.routes[route.api_key].handle
        use_handler(broker, route.name, fail_in_a_task)
        client.call(full_message(route.request, route.max_version), route.max_version)
        use_handler(broker, route.name, original)
        # Neither another connection nor the next request on the same one.
        assert produce_to(other, "topic").error_code == 0
        assert produce_to(client, "topic").error_code == 0


@pytest.mark.parametrize("handle", [fail_at_once, fail_in_a_task])
def test_an_api_that_cannot_even_say_that_it_failed_closes_the_connection(
    broker: RunningBroker, client: RawClient, handle: Callable[[Any, Any], Any]
) -> None:
    routes = broker.broker.dispatcher.routes

    def no_answer(request: Any, code: ErrorCode) -> Any:
        raise ValueError("on purpose, too")

    routes[18] = dataclasses.replace(routes[18], handle=handle, error_response=no_answer)
    client.send(ApiVersionsRequest(), version=0)
    assert client.is_closed_by_peer()
    with RawClient(broker) as other:
        create_topic(other, "topic")
        assert produce_to(other, "topic").error_code == 0


def break_an_invariant_of_the_log(request: Any, context: Any) -> Any:
    return FileSlice(None, -1, 0)


async def break_an_invariant_of_the_log_in_a_task(request: Any, context: Any) -> Any:
    return FileSlice(None, -1, 0)


@pytest.mark.parametrize(
    "handle", [break_an_invariant_of_the_log, break_an_invariant_of_the_log_in_a_task]
)
def test_a_broken_invariant_of_the_log_halts(
    handle: Callable[[Any, Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with running_broker() as broker, RawClient(broker) as client:
        use_handler(broker, "ApiVersions", handle)
        create_topic(client, "topic")
        # What stands behind it in the pipeline is neither done nor answered.
        client.socket.sendall(
            client.frame(ApiVersionsRequest(), 0)
            + client.frame(produce("topic", acks=1), PRODUCE_VERSION)
        )
        assert client.is_closed_by_peer()
        with pytest.raises(BrokerHaltedError, match="an invariant of the log is broken"):
            broker.stop()
        assert not (broker.data_dir / CLEAN_SHUTDOWN_FILE).exists()
        (segment,) = (broker.data_dir / "topic-0").glob("*.log")
        assert segment.stat().st_size == 0
    assert logging.CRITICAL in [record.levelno for record in caplog.records]


def fail_an_assertion(request: Any, context: Any) -> Any:
    raise AssertionError("on purpose, in the broker")


def test_an_assertion_outside_of_the_log_is_a_fault_like_any_other(
    broker: RunningBroker, client: RawClient
) -> None:
    use_handler(broker, "ApiVersions", fail_an_assertion)
    response = client.call(ApiVersionsRequest(), 0)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_zero(
    client: RawClient, version: int
) -> None:
    # Nothing behind the header can be understood.
    body = struct.pack(">hhihx", 18, version, 42, -1) + b"\xff\xff garbage"
    client.socket.sendall(struct.pack(">i", len(body)) + body)
    reply = client.receive_frame()
    assert reply[:4] == struct.pack(">i", 42)
    response = decode(ApiVersionsResponse, 0, reply[4:])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [
        (18, 0, 4)
    ]
    # The connection can still be used.
    assert client.call(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def unserved() -> Iterator[tuple[int, int]]:
    """Keys and versions around everything that is served, and everything that is not."""
    for key, (first, last, _) in VERSION_BOUNDS.items():
        if key not in ROUTES:
            yield from ((key, first), (key, last))
        elif key != 18:
            route = ROUTES[key]
            yield from ((key, route.min_version - 1), (key, route.max_version + 1))
    yield from ((-1, 0), (1000, 0), (32767, 32767), (-32768, -32768))


def test_what_is_not_served_closes_the_connection_with_one_line(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    for key, version in unserved():
        caplog.clear()
        with RawClient(broker) as client:
            body = struct.pack(">hhih", key, version, 1, -1) + b"\0" * 20
            client.socket.sendall(struct.pack(">i", len(body)) + body)
            assert client.is_closed_by_peer(), (key, version)
        (record,) = caplog.records
        assert f"API key {key} version {version} is not served" in record.getMessage()
        assert record.exc_info is None


@every_route
def test_a_request_with_missing_bytes_closes_the_connection(
    broker: RunningBroker, route: Route, caplog: pytest.LogCaptureFixture
) -> None:
    for version in range(route.min_version, route.max_version + 1):
        whole = frame(full_message(route.request, version), version)[4:]
        # A body that ends early, a header that ends early.
        for damaged in (whole[:-1], whole[:9]):
            caplog.clear()
            with RawClient(broker) as client:
                client.socket.sendall(struct.pack(">i", len(damaged)) + damaged)
                assert client.is_closed_by_peer(), (version, damaged)
            (record,) = caplog.records
            assert "unreadable request" in record.getMessage()
            assert record.exc_info is None
    assert broker.broker.dispatcher.handler_failures == 0


def test_the_table_of_api_versions_is_what_is_served(client: RawClient) -> None:
    response = client.call(ApiVersionsRequest(), 0)
    assert {(key.api_key, key.min_version, key.max_version) for key in response.api_keys} == {
        (route.api_key, route.advertised_min_version, route.max_version)
        for route in ROUTES.values()
    }
    for route in ROUTES.values():
        declared = api(route.api_key)
        assert (route.min_version, route.max_version) == (
            declared.min_version,
            declared.max_version,
        )

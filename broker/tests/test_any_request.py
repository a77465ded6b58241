"""Every well-formed request gets a well-formed answer, however little sense it makes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.broker.handlers import Route, load_routes
from klamm.broker.testing import running_broker
from klamm.broker.tests.groups.group_client import become_leader, find_coordinator
from klamm.broker.tests.raw_client import RawClient, batch, create_topic, produce_to
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from klamm.wire.schema import Field, Message, Primitive, Struct
from klamm.wire.tests.values import messages

ROUTES = load_routes()
EXAMPLES = max(10, settings().max_examples // 2)

NAMES = ["topic", "other", "missing", "", "..", "a.b", "a_b", "x" * 250, "grün"]
SMALL = st.integers(-2, 3)
# What would take long, or leave the broker with thousands of partitions.
NARROWED: dict[str, st.SearchStrategy[Any]] = {
    "max_wait_ms": st.sampled_from([-1, 0, 1]),
    "num_partitions": SMALL,
    "count": SMALL,
    "replication_factor": SMALL,
    "partition_index": SMALL,
    "partition": SMALL,
    "index": SMALL,
    "partition_indexes": SMALL,
    "broker_ids": SMALL,
    "fetch_offset": SMALL,
    "timestamp": st.integers(-8, 3),
    "current_leader_epoch": SMALL,
    "leader_epoch": SMALL,
    "last_fetched_epoch": SMALL,
    "session_id": st.sampled_from([0, 1]),
    "session_epoch": st.sampled_from([-1, 0, 1]),
    "acks": st.sampled_from([-1, 1, 2]),
    # Members wait for each other as long as one of these says.
    "session_timeout_ms": st.sampled_from([-1, 0, 1, 5]),
    "rebalance_timeout_ms": st.sampled_from([-1, 0, 1]),
    "generation_id": SMALL,
    "generation_id_or_member_epoch": SMALL,
    "member_epoch": SMALL,
    "key_type": SMALL,
    "records": st.sampled_from([b"", b"x" * 100, batch(), batch() * 2, batch(producer_id=5)]),
}


def strategies(topic_id: UUID, member_ids: list[str]) -> Any:
    """Values that mean something now and then: known topics, known ids, small numbers."""
    ids = st.sampled_from([topic_id, UUID(int=0), UUID(int=7)])
    names = st.sampled_from([*NAMES, *member_ids])

    def narrow(owner: type[Struct], declared: Field) -> st.SearchStrategy[Any] | None:
        kind = declared.kind
        assert isinstance(kind, Primitive)
        if kind.name == "uuid":
            return ids
        if kind.name == "string" and declared.name != "client_software_name":
            return names
        return NARROWED.get(declared.name)

    return narrow


def requests_of(
    route: Route, topic_id: UUID, member_ids: list[str]
) -> st.SearchStrategy[tuple[int, Message]]:
    narrowing = strategies(topic_id, member_ids)

    @cache
    def of_version(version: int) -> st.SearchStrategy[tuple[int, Message]]:
        """Made once: it costs more than the examples that are drawn from it."""
        return st.tuples(st.just(version), messages(route.request, version, narrowing))

    return st.integers(route.min_version, route.max_version).flatmap(of_version)


@pytest.fixture
def topic_client() -> Iterator[tuple[Any, RawClient, UUID, list[str]]]:
    """A broker with a topic, and a group of each kind with a member."""
    properties = {
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "2",
        "group.min.session.timeout.ms": "1",
    }
    with running_broker(properties=properties) as broker, RawClient(broker) as client:
        topic_id = create_topic(client, "topic", partitions=2)
        produce_to(client, "topic")
        find_coordinator(client)
        joined = become_leader(client, "topic", rebalance_timeout_ms=500)
        client.call(
            ConsumerGroupHeartbeatRequest(
                group_id="other",
                member_id="member",
                rebalance_timeout_ms=1,
                subscribed_topic_names=["topic"],
                topic_partitions=[],
            )
        )
        yield broker, client, topic_id, [joined.member_id, "member"]


@pytest.mark.parametrize("route", ROUTES.values(), ids=[route.name for route in ROUTES.values()])
def test_every_request_is_answered(
    route: Route,
    topic_client: tuple[Any, RawClient, UUID, list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker, client, topic_id, member_ids = topic_client

    @settings(max_examples=EXAMPLES, database=None)
    @given(requests_of(route, topic_id, member_ids))
    def run(asked: tuple[int, Message]) -> None:
        version, request = asked
        client.call(request, version)
        failures = [record for record in caplog.records if record.exc_info is not None]
        assert failures == []

    run()
    assert broker.broker.dispatcher.handler_failures == 0
    assert client.call(ApiVersionsRequest(), 0).error_code == 0

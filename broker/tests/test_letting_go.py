"""Long messages are freed in steps, and what others share of them stays as it is."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from klamm.broker.handlers import load_routes
from klamm.broker.letting_go import structs_of
from klamm.broker.steps import ITEMS_PER_STEP_MAX, let_go
from klamm.log.work import run_inline
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.schema import Struct
from klamm.wire.tests.samples import full_message

MANY = 3 * ITEMS_PER_STEP_MAX


class Name(str):
    """One that can be watched: unlike a struct, it takes weak references."""


def test_each_struct_stands_before_those_in_it() -> None:
    partitions = [FetchPartition(partition=index) for index in range(3)]
    topics = [
        FetchTopic(topic="a", partitions=partitions[:2]),
        FetchTopic(topic="b", partitions=partitions[2:]),
    ]
    found = run_inline(structs_of(FetchRequest(topics=topics), None))
    positions = {id(struct): position for position, struct in enumerate(found)}
    assert set(positions) >= {id(struct) for struct in (*topics, *partitions)}
    for topic in topics:
        for partition in topic.partitions:
            assert positions[id(topic)] < positions[id(partition)]


@pytest.mark.parametrize("api_key", load_routes())
def test_every_struct_of_every_request_is_found(api_key: int) -> None:
    route = load_routes()[api_key]
    message = full_message(route.request, route.max_version)
    found = run_inline(structs_of(message))
    assert {id(struct) for struct in found} == {id(struct) for struct in within(message)}


def within(value: Any) -> Iterator[Struct]:
    """The same by looking at everything."""
    if isinstance(value, Struct):
        held = [getattr(value, declared.name) for declared in value.FIELDS]
    else:
        held = value if isinstance(value, list) else []
    for each in held:
        if isinstance(each, Struct):
            yield each
        yield from within(each)


def test_a_message_is_freed_bit_by_bit() -> None:
    message = CreateTopicsRequest(
        topics=[CreatableTopic(name=Name(number)) for number in range(MANY)]
    )
    names = [weakref.ref(topic.name) for topic in message.topics]
    structs = run_inline(structs_of(message))
    del message
    assert sum(name() is None for name in names) == 0
    freed = [sum(name() is None for name in names) for _ in let_go(structs)]
    assert freed == [ITEMS_PER_STEP_MAX, 2 * ITEMS_PER_STEP_MAX, MANY]


def test_what_others_share_stays() -> None:
    shared = [CreatableTopic(name=f"{number}") for number in range(MANY)]
    run_inline(let_go(run_inline(structs_of(CreateTopicsRequest(topics=shared)))))
    assert [topic.name for topic in shared] == [f"{number}" for number in range(MANY)]

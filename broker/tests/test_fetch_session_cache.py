"""Fetch sessions as data: epochs, eviction, the order in which partitions are served."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.fetch_session import (
    EVICTION_AGE_S,
    INT32_MAX,
    FetchScope,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
    SessionPartition,
    begin_fetch,
)
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

NO_ID = UUID(int=0)


def request(
    *indexes: int,
    session_id: int = 0,
    epoch: int = 0,
    forget: tuple[int, ...] = (),
    offset: int = 0,
) -> FetchRequest:
    """A fetch of partitions of one topic."""
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic="topic",
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)
                    for index in indexes
                ],
            )
        ]
        if indexes
        else [],
        forgotten_topics_data=[ForgottenTopic(topic="topic", partitions=list(forget))]
        if forget
        else [],
    )


def data(index: int, records: bytes = b"", high_watermark: int = 5, **fields: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        **fields,  # type: ignore[arg-type] # only numbers are used
    )


def begin(cache: FetchSessionCache, asked: FetchRequest, now: float = 0.0) -> FetchScope:
    return run_inline(begin_fetch(cache, asked, uses_topic_ids=False, now=now))


def answer(scope: FetchScope, results: dict[int, PartitionData] | None = None) -> FetchResponse:
    """Answer each partition; those that are not given have nothing new."""
    results = results or {}
    return run_inline(
        scope.response(
            [results.get(asked.index) or data(asked.index) for asked in scope.partitions]
        )
    )


def indexes_of(scope: FetchScope) -> list[int]:
    return [asked.index for asked in scope.partitions]


def told(response: FetchResponse) -> list[int]:
    return [
        partition.partition_index for topic in response.responses for partition in topic.partitions
    ]


def open_session(cache: FetchSessionCache, *indexes: int, now: float = 0.0) -> int:
    return answer(begin(cache, request(*indexes), now)).session_id


def test_a_full_fetch_opens_a_session_and_tells_everything() -> None:
    cache = FetchSessionCache(10)
    response = answer(begin(cache, request(0, 1)))
    assert response.session_id > 0
    assert told(response) == [0, 1]
    assert len(cache) == 1


def test_a_fetch_that_wants_no_session_gets_none() -> None:
    cache = FetchSessionCache(10)
    response = answer(begin(cache, request(0, 1, epoch=-1)))
    assert response.session_id == 0
    assert told(response) == [0, 1]
    assert len(cache) == 0


def test_a_fetch_that_never_got_an_answer_leaves_no_session() -> None:
    cache = FetchSessionCache(10)
    begin(cache, request(0))
    assert len(cache) == 0


def test_an_incremental_fetch_covers_what_the_session_has() -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0, 1, 2)
    scope = begin(cache, request(session_id=session_id, epoch=1))
    assert indexes_of(scope) == [0, 1, 2]
    # Nothing is new, so nothing is told.
    response = answer(scope)
    assert (response.session_id, told(response)) == (session_id, [])


def test_partitions_are_added_changed_and_forgotten() -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0, 1, 2)
    scope = begin(cache, request(1, 3, session_id=session_id, epoch=1, forget=(0,), offset=7))
    assert indexes_of(scope) == [1, 2, 3]
    assert [asked.fetch_offset for asked in scope.partitions] == [7, 0, 7]


def test_only_what_has_changed_is_told() -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0, 1, 2, 3)
    scope = begin(cache, request(session_id=session_id, epoch=1))
    response = answer(
        scope,
        {
            0: data(0, b"records"),
            1: data(1, high_watermark=6),
            3: data(3, error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
        },
    )
    assert told(response) == [0, 1, 3]
    # The error is over: that is news again.
    scope = begin(cache, request(session_id=session_id, epoch=2))
    response = answer(scope, {1: data(1, high_watermark=6)})
    assert told(response) == [3]


def test_partitions_that_gave_data_are_served_last_next_time() -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0, 1, 2)
    scope = begin(cache, request(session_id=session_id, epoch=1))
    answer(scope, {0: data(0, b"records")})
    scope = begin(cache, request(session_id=session_id, epoch=2))
    assert indexes_of(scope) == [1, 2, 0]
    answer(scope, {1: data(1, b"records"), 2: data(2, b"records")})
    assert indexes_of(begin(cache, request(session_id=session_id, epoch=3))) == [0, 1, 2]


@given(st.lists(st.sets(st.integers(0, 3)), max_size=12))
def test_nobody_starves(rounds: list[set[int]]) -> None:
    """Whoever gave nothing keeps its order in front of those that did."""
    cache = FetchSessionCache(1)
    session_id = open_session(cache, 0, 1, 2, 3)
    order = [0, 1, 2, 3]
    for epoch, with_data in enumerate(rounds, 1):
        scope = begin(cache, request(session_id=session_id, epoch=epoch))
        assert indexes_of(scope) == order
        answer(scope, {index: data(index, b"records") for index in with_data})
        order = [index for index in order if index not in with_data] + [
            index for index in order if index in with_data
        ]


def test_an_unknown_session_is_refused() -> None:
    scope = begin(FetchSessionCache(10), request(0, session_id=77, epoch=1))
    assert scope.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 3, 100])
def test_a_wrong_epoch_is_refused_and_changes_nothing(epoch: int) -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0)
    scope = begin(cache, request(1, session_id=session_id, epoch=epoch))
    assert scope.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert indexes_of(begin(cache, request(session_id=session_id, epoch=1))) == [0]


def test_a_repeated_epoch_is_refused() -> None:
    """The reply was lost: the consumer must begin anew instead of missing what it said."""
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0)
    answer(begin(cache, request(session_id=session_id, epoch=1)))
    scope = begin(cache, request(session_id=session_id, epoch=1))
    assert scope.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0)
    asked = request(session_id=session_id, epoch=1)
    scope = run_inline(begin_fetch(cache, asked, uses_topic_ids=True, now=0.0))
    assert scope.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_epoch_wraps_to_one() -> None:
    """Zero would mean a new session."""
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0)
    session = cache.get(session_id)
    assert session is not None
    session.epoch = INT32_MAX
    assert begin(cache, request(session_id=session_id, epoch=INT32_MAX)).error == ErrorCode.NONE
    assert session.epoch == 1
    assert begin(cache, request(session_id=session_id, epoch=1)).error == ErrorCode.NONE


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_closes_the_session_that_it_names(epoch: int) -> None:
    cache = FetchSessionCache(10)
    old = open_session(cache, 0)
    response = answer(begin(cache, request(0, session_id=old, epoch=epoch)))
    assert cache.get(old) is None
    assert len(cache) == (1 if epoch == 0 else 0)
    assert response.session_id != old


def test_a_session_without_partitions_ends() -> None:
    cache = FetchSessionCache(10)
    session_id = open_session(cache, 0)
    scope = begin(cache, request(session_id=session_id, epoch=1, forget=(0,)))
    assert (answer(scope).session_id, len(cache)) == (0, 0)


# --- the cache ---


def partitions(count: int = 1) -> dict[PartitionKey, SessionPartition]:
    made = [SessionPartition("topic", NO_ID, index, 0, 100, -1, -1, -1) for index in range(count)]
    return {each.key: each for each in made}


def made(cache: FetchSessionCache, now: float) -> FetchSession:
    session = cache.create(partitions(), False, now)
    assert session is not None
    return session


def test_session_ids_are_positive_and_differ() -> None:
    cache = FetchSessionCache(500)
    ids = {made(cache, 0.0).session_id for _ in range(500)}
    assert len(ids) == 500
    assert all(0 < session_id <= INT32_MAX for session_id in ids)


def test_a_full_cache_of_sessions_in_use_takes_no_new_one() -> None:
    cache = FetchSessionCache(2)
    first, second = made(cache, 0.0), made(cache, 0.0)
    assert cache.create(partitions(), False, EVICTION_AGE_S - 1) is None
    assert cache.get(first.session_id) is first
    assert cache.get(second.session_id) is second
    # The consumer is served all the same, just not with a session.
    response = answer(begin(cache, request(0, 1), now=1.0))
    assert (response.session_id, told(response)) == (0, [0, 1])


def test_a_session_that_was_not_used_for_long_makes_room() -> None:
    cache = FetchSessionCache(2)
    old, used = made(cache, 0.0), made(cache, 1.0)
    new = made(cache, EVICTION_AGE_S)
    assert cache.get(old.session_id) is None
    assert cache.get(used.session_id) is used
    assert cache.get(new.session_id) is new
    assert len(cache) == 2


def test_the_least_recently_used_one_goes() -> None:
    cache = FetchSessionCache(2)
    first, second = made(cache, 0.0), made(cache, 1.0)
    cache.touch(first, 2.0)
    made(cache, 1.0 + EVICTION_AGE_S)
    assert cache.get(second.session_id) is None
    assert cache.get(first.session_id) is first


def test_a_cache_of_no_slots_has_no_sessions() -> None:
    cache = FetchSessionCache(0)
    assert cache.create(partitions(), False, 0.0) is None
    assert open_session(cache, 0) == 0


def test_removing_one_that_is_not_there_does_nothing() -> None:
    FetchSessionCache(1).remove(5)


@given(st.lists(st.tuples(st.sampled_from(["create", "touch", "remove"]), st.integers(0, 30))))
def test_it_is_bounded_whatever_happens(steps: list[tuple[str, int]]) -> None:
    cache = FetchSessionCache(3)
    now = 0.0
    known: list[FetchSession] = []
    for kind, value in steps:
        now += value * 10
        alive = [session for session in known if cache.get(session.session_id) is session]
        if kind == "create":
            session = cache.create(partitions(), False, now)
            if session is None:
                assert len(alive) == 3
                assert all(now - each.used_at < EVICTION_AGE_S for each in alive)
            else:
                known.append(session)
        elif alive:
            chosen = alive[value % len(alive)]
            if kind == "touch":
                cache.touch(chosen, now)
            else:
                cache.remove(chosen.session_id)
        assert len(cache) <= 3

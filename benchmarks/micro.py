"""`python -m benchmarks.micro`: what single messages cost in the codec, beside the construct form.

No broker and no socket: these are the figures that decide how many small requests a broker can
answer. Each is the best of several medians, which is what a quiet core gives; a busy machine makes
them larger, never smaller. Nothing here fails: the targets are printed beside the figures.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from benchmarks.machine import Usage, machine_kind
from klamm.wire import codec, construct_form
from klamm.wire.header import RequestHeader, decode_request_header, encode_request_header
from klamm.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from klamm.wire.messages.header import RequestHeader as DeclaredRequestHeader
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from klamm.wire.records.record import build_batch

PRODUCE_VERSION = ProduceRequest.VERSIONS.last
FETCH_VERSION = FetchRequest.VERSIONS.last
TOPICS = 10
PARTITIONS = 10

ROUNDS = 7
# Long enough for a hundred calls of the slowest case, short enough to fall between disturbances.
ROUND_S = 0.1
CALLS_MIN = 20


@dataclass(frozen=True)
class Case:
    """One thing to measure, in the fast codec and in the construct form."""

    name: str
    target_us: float | None
    fast: Callable[[], object]
    construct: Callable[[], object]


def cases() -> Iterator[Case]:
    """Make each message once and check that both forms agree on it."""
    header = encode_request_header(RequestHeader(0, PRODUCE_VERSION, 7, "producer-1"))
    yield Case(
        "decode the header of a request",
        None,
        lambda: decode_request_header(header),
        lambda: construct_form.decode(DeclaredRequestHeader, 2, header),
    )

    produce = codec.encode(_produce_request(), PRODUCE_VERSION)
    yield Case(
        f"decode Produce v{PRODUCE_VERSION}, one partition",
        15,
        lambda: codec.decode(ProduceRequest, PRODUCE_VERSION, produce),
        lambda: construct_form.decode(ProduceRequest, PRODUCE_VERSION, produce),
    )

    fetch = codec.encode(_fetch_request(), FETCH_VERSION)
    yield Case(
        f"decode Fetch v{FETCH_VERSION}, {TOPICS * PARTITIONS} partitions",
        60,
        lambda: codec.decode(FetchRequest, FETCH_VERSION, fetch),
        lambda: construct_form.decode(FetchRequest, FETCH_VERSION, fetch),
    )

    response = _fetch_response()
    chunks = codec.encode_chunks(response, FETCH_VERSION)
    assert b"".join(chunks) == construct_form.encode(response, FETCH_VERSION)
    yield Case(
        f"encode the response to Fetch v{FETCH_VERSION}, {TOPICS * PARTITIONS} partitions",
        100,
        lambda: codec.encode_chunks(response, FETCH_VERSION),
        lambda: construct_form.encode(response, FETCH_VERSION),
    )


def _topic_ids() -> Iterator[tuple[int, UUID]]:
    return ((number, UUID(int=number << 64 | 4711)) for number in range(1, TOPICS + 1))


def _batch() -> bytes:
    return build_batch([(b"key", b"v" * 100, (), 1_700_000_000_000 + i) for i in range(10)])


def _produce_request() -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=_batch())
    topic = TopicProduceData(topic_id=UUID(int=4711), partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def _fetch_request() -> FetchRequest:
    topics = [
        FetchTopic(
            topic_id=topic_id,
            partitions=[
                FetchPartition(
                    partition=index,
                    current_leader_epoch=1,
                    fetch_offset=1000 * number + index,
                    partition_max_bytes=1 << 20,
                )
                for index in range(PARTITIONS)
            ],
        )
        for number, topic_id in _topic_ids()
    ]
    return FetchRequest(max_wait_ms=500, min_bytes=1, session_id=1, session_epoch=1, topics=topics)


def _fetch_response() -> FetchResponse:
    batch = _batch()
    responses = [
        FetchableTopicResponse(
            topic_id=topic_id,
            partitions=[
                PartitionData(
                    partition_index=index,
                    high_watermark=1000 * number + index,
                    last_stable_offset=1000 * number + index,
                    log_start_offset=0,
                    aborted_transactions=None,
                    records=batch,
                )
                for index in range(PARTITIONS)
            ],
        )
        for number, topic_id in _topic_ids()
    ]
    return FetchResponse(session_id=1, responses=responses)


def measure_us(call: Callable[[], object]) -> float:
    """Give the best of several medians of the time of one call, in microseconds."""
    clock = time.perf_counter_ns
    medians = []
    for _ in range(ROUNDS):
        times: list[int] = []
        end = clock() + int(ROUND_S * 1e9)
        while clock() < end or len(times) < CALLS_MIN:
            start = clock()
            call()
            times.append(clock() - start)
        medians.append(statistics.median(times))
    return min(medians) / 1000


def main() -> int:
    before = Usage.now()
    print(machine_kind())
    print(f"{'':54}{'codec':>9}{'target':>9}{'construct':>11}{'ratio':>7}")
    for case in cases():
        fast, construct = measure_us(case.fast), measure_us(case.construct)
        target = "" if case.target_us is None else f"≤ {case.target_us:.0f} µs"
        ratio = f"{construct / fast:.0f}x"
        print(f"{case.name:54}{fast:6.1f} µs{target:>9}{construct:8.0f} µs{ratio:>7}")
    print(f"Others took {before.others_share(Usage.now()):.0%} of the machine meanwhile.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Many producers with large requests share one budget of memory: all are served."""

from __future__ import annotations

import threading

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.process.fixtures import StartKlamm
from compat_tests.twin.batches import R, batch

PRODUCERS = 200
RECORD_BYTES = 900_000
BUDGET_BYTES = 8 * 1024 * 1024
MEMORY_GROWTH_MAX = 64 * 1024 * 1024


def test_requests_share_a_budget(start_klamm: StartKlamm) -> None:
    assert PRODUCERS * RECORD_BYTES > 2 * MEMORY_GROWTH_MAX
    klamm = start_klamm(
        {
            "queued.max.request.bytes": str(BUDGET_BYTES),
            "socket.request.max.bytes": str(BUDGET_BYTES // 2),
        }
    )
    create_topic(klamm.bootstrap, "topic")
    records = batch(R(bytes(RECORD_BYTES)))
    offsets: list[int] = []
    everybody_is_there = threading.Barrier(PRODUCERS)

    def produce() -> None:
        with raw.connect(klamm.bootstrap, 60) as connection:
            body = raw.produce_body("topic", records, acks=1)
            everybody_is_there.wait()
            connection.sendall(raw.request_frame(raw.API_PRODUCE, raw.PRODUCE_VERSION, body))
            error, offset = raw.produce_outcome(raw.read_reply(connection)[1])
        assert error == 0
        offsets.append(offset)

    before = klamm.memory_bytes()
    threads = [threading.Thread(target=produce, daemon=True) for _ in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(offsets) == list(range(PRODUCERS))
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert klamm.complaints() == []

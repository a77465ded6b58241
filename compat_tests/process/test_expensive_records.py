"""Batches that are small to send and costly to look into, while others are served.

Records of a compacted topic need keys, so the broker has to open every batch.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.steady import SteadyClient
from compat_tests.process.watched import WatchedKlamm
from compat_tests.twin.batches import COMPRESSORS, GZIP, LZ4, ZSTD, R, batch, encode_record

INVALID_RECORD = 87
WAIT_MAX_S = 1.0

BOMB_BYTES = 100_000_000
# The broker opens one batch of a request at a time, within klamm.decompressed.bytes.max (128 MiB).
MEMORY_GROWTH_MAX = 2 * 128 * 1024 * 1024


@pytest.fixture
def klamm(start_klamm: StartKlamm) -> WatchedKlamm:
    klamm = start_klamm()
    create_topic(klamm.bootstrap, "compacted", config={"cleanup.policy": "compact"})
    return klamm


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_a_bomb_of_one_large_value(klamm: WatchedKlamm, codec: int) -> None:
    """Kafka looks at the size that is stored, so it takes this."""
    bomb = batch(R(bytes(BOMB_BYTES), key=b"key"), codec=codec)
    assert len(bomb) < BOMB_BYTES // 200
    before = klamm.memory_bytes()
    with SteadyClient(klamm.bootstrap) as steady:
        assert raw.produce(klamm.bootstrap, "compacted", bomb) == (0, 0)
        assert raw.produce(klamm.bootstrap, "compacted", batch(R(key=b"key"))) == (0, 1)
        steady.wait_for_more(5)
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert steady.longest_wait_s < WAIT_MAX_S
    assert klamm.complaints() == []


def test_a_bomb_of_zeros(klamm: WatchedKlamm) -> None:
    """Zeros are no records."""
    bomb = batch(codec=GZIP, payload=COMPRESSORS[GZIP](bytes(BOMB_BYTES)))
    before = klamm.memory_bytes()
    with SteadyClient(klamm.bootstrap) as steady:
        error, _ = raw.produce(klamm.bootstrap, "compacted", bomb)
        assert error == INVALID_RECORD
        assert raw.produce(klamm.bootstrap, "compacted", batch(R(key=b"key"))) == (0, 0)
        steady.wait_for_more(5)
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert steady.longest_wait_s < WAIT_MAX_S


def test_many_tiny_records(klamm: WatchedKlamm) -> None:
    count, records = tiny_records(1_000_000)
    tiny = batch(payload=records, record_count=count, last_offset_delta=count - 1)
    with SteadyClient(klamm.bootstrap) as steady:
        for times in range(3):
            assert raw.produce(klamm.bootstrap, "compacted", tiny) == (0, times * count)
        steady.wait_for_more(5)
    assert steady.longest_wait_s < WAIT_MAX_S
    assert klamm.complaints() == []


def test_many_tiny_records_of_which_the_last_is_bad(klamm: WatchedKlamm) -> None:
    """Refused as a whole, once the last record has been reached."""
    count, records = tiny_records(1_000_000)
    records += encode_record(R(b"", key=None), count)
    tiny = batch(payload=records, record_count=count + 1, last_offset_delta=count)
    with SteadyClient(klamm.bootstrap) as steady:
        error, _ = raw.produce(klamm.bootstrap, "compacted", tiny)
        assert error == INVALID_RECORD
        assert raw.produce(klamm.bootstrap, "compacted", batch(R(key=b"key"))) == (0, 0)
        steady.wait_for_more(5)
    assert steady.longest_wait_s < WAIT_MAX_S


@pytest.mark.parametrize("kind", ["bombs", "tiny records"])
def test_many_at_once(klamm: WatchedKlamm, kind: str) -> None:
    """They take turns: neither their memory nor their threads add up."""
    count = 1
    records = batch(R(bytes(BOMB_BYTES), key=b"key"), codec=ZSTD)
    if kind == "tiny records":
        count, encoded = tiny_records(1_000_000)
        records = batch(payload=encoded, record_count=count, last_offset_delta=count - 1)
    body = raw.produce_body("compacted", records)
    request = raw.request_frame(raw.API_PRODUCE, raw.PRODUCE_VERSION, body)
    before = klamm.memory_bytes()
    with SteadyClient(klamm.bootstrap) as steady, ExitStack() as stack:
        peers = [stack.enter_context(raw.connect(klamm.bootstrap, 60)) for _ in range(12)]
        for peer in peers:
            peer.sendall(request)
        outcomes = [raw.produce_outcome(raw.read_reply(peer)[1]) for peer in peers]
    assert sorted(outcomes) == [(0, times * count) for times in range(len(peers))]
    assert klamm.memory_peak_bytes() - before < MEMORY_GROWTH_MAX
    assert steady.longest_wait_s < WAIT_MAX_S


def tiny_records(size: int) -> tuple[int, bytes]:
    """As many records with an empty key and an empty value as fit into that size."""
    encoded = bytearray()
    count = 0
    while len(encoded) + 12 < size:
        encoded += encode_record(R(b"", key=b""), count)
        count += 1
    return count, bytes(encoded)

"""Descriptors are shared: however many peers connect, the logs keep what they need."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from klamm.broker.descriptors import SPARE, connections_end, log_files_max
from klamm.broker.tests.raw_client import (
    RawClient,
    create_topic,
    fetch_from,
    produce_to,
)
from klamm.broker.tests.serving import serving
from klamm.broker.tests.waiting import until
from klamm.wire.messages.api_versions import ApiVersionsRequest

LIMIT = 128
TOPIC_PARTITIONS = 60


@pytest.mark.parametrize("limit", [128, 256, 1024, 4096, 20_000, 1_000_000])
def test_connections_leave_what_the_logs_may_have_open(limit: int) -> None:
    assert 0 < log_files_max(limit) <= limit // 4
    assert connections_end(limit) + log_files_max(limit) + SPARE == limit
    # Most of them are for connections all the same.
    assert connections_end(limit) >= limit // 2 - SPARE


def test_a_flood_of_connections_pauses_accepting_and_takes_no_log_offline(tmp_path: Path) -> None:
    with serving(tmp_path / "data", descriptors=LIMIT) as served:
        client = RawClient(served.port)
        # More partitions than files may be open: they come and go all the time.
        create_topic(client, "topic", TOPIC_PARTITIONS)
        flood = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(3 * LIMIT)]
        until(lambda: any("not accepting" in line for line in served.log_lines))
        for turn in range(3):
            for index in range(TOPIC_PARTITIONS):
                assert produce_to(client, "topic", partition=index).base_offset == turn
                fetched = fetch_from(client, "topic", partitions=(index,))
                assert (fetched.error_code, fetched.high_watermark) == (0, turn + 1)
        create_topic(client, "during the flood".replace(" ", "-"), 3)
        for peer in flood:
            peer.close()

        def is_accepted() -> bool:
            try:
                with RawClient(served.port) as late:
                    late.call(ApiVersionsRequest(), 0)
                    return True
            except (EOFError, ConnectionError):
                return False

        until(is_accepted)
        assert produce_to(client, "topic").base_offset == 3
        client.close()
    assert not any("Traceback" in line or "offline" in line for line in served.log_lines)

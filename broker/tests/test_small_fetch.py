"""A fetch of little is copied into its reply, and says what one that comes from the file says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from klamm.broker import connection
from klamm.broker.fetching import COPIED_BYTES_MAX
from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import (
    RawClient,
    batch,
    create_topic,
    fetch_from,
    produce_to,
)
from klamm.wire.errors import ErrorCode

OVERHEAD = len(batch(b"x" * 1000)) - 1000


@pytest.fixture
def from_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what was sent from files."""
    sizes: list[int] = []
    send_file = connection.Connection._send_file

    def watched(self: connection.Connection, chunk: Any) -> int:
        sizes.append(len(chunk))
        return send_file(self, chunk)

    monkeypatch.setattr(connection.Connection, "_send_file", watched)
    return sizes


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("size", "sent"),
    [(COPIED_BYTES_MAX, []), (COPIED_BYTES_MAX + 1, [COPIED_BYTES_MAX + 1])],
)
def test_records_are_the_same_either_way(
    client: RawClient, from_files: list[int], size: int, sent: Sequence[int]
) -> None:
    create_topic(client, "t")
    written = batch(b"x" * (size - OVERHEAD))
    assert len(written) == size
    produce_to(client, "t", written)
    records = bytes(fetch_from(client, "t").records)
    # Offset and leader epoch are the broker's.
    assert (len(records), records[16:]) == (size, written[16:])
    assert from_files == sent


def test_a_segment_that_is_too_short_is_an_error_and_no_half_batch(
    broker: RunningBroker, client: RawClient
) -> None:
    create_topic(client, "t")
    produce_to(client, "t")
    segment = broker.data_dir / "t-0" / "00000000000000000000.log"
    assert fetch_from(client, "t").error_code == ErrorCode.NONE
    os.truncate(segment, segment.stat().st_size - 1)
    assert fetch_from(client, "t").error_code == ErrorCode.KAFKA_STORAGE_ERROR

"""What stands in a partition: written through both brokers, read back, and compared byte by byte.

Two things may differ in stored bytes: the clock of a batch that the broker stamps itself (and with
it the checksum), and how a broker's own compressor packs a batch that it compresses again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from compat_tests.twin.batches import (
    CODEC_MASK,
    HEADER,
    LOG_APPEND_TIME,
    checksum,
    decompress,
    read_headers,
)
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Pair
from compat_tests.twin.may_differ import CLOCK_TOLERANCE_MS
from compat_tests.twin.requests import fetch, fetch_partition, produce

PRODUCE_VERSION = 9
FETCH_VERSION = 12


def write(talk: Conversation, topic: str, *batches: bytes, partition: int = 0) -> None:
    """Append batches through both brokers, which must both accept them and answer alike."""
    for records in batches:
        pair = talk.ask("produce", PRODUCE_VERSION, produce(topic, {partition: records}))
        for reply in (pair.kafka, pair.other):
            (written,) = reply["responses"][0]["partition_responses"]
            assert written["error_code"] == "none", written


def compare_log(
    talk: Conversation, topic: str, partition: int = 0, *, unpacked: bool = False
) -> Pair:
    """Read a partition from its start, with all its offsets, and compare.

    Args:
        unpacked: compare what is inside compressed batches, not how it was compressed.
    """
    body = fetch({topic: [fetch_partition(partition)]})
    return talk.ask(
        *("fetch", FETCH_VERSION, body), prepare=lambda reply: _readable(reply, unpacked=unpacked)
    )


def compare_logs(
    talk: Conversation, topic: str, names: Mapping[int, str], *, deviation: str | None = None
) -> None:
    """Read several partitions in one request and compare; names are for the report."""
    if not names:
        return
    body = fetch({topic: [fetch_partition(index) for index in names]})

    def by_name(reply: Plain) -> Plain:
        partitions = [one for held in _readable(reply)["responses"] for one in held["partitions"]]
        return {"logs": [{"log": names[one["partition_index"]], **one} for one in partitions]}

    talk.ask("fetch", FETCH_VERSION, body, prepare=by_name, deviation=deviation)


def _readable(reply: Plain, *, unpacked: bool = False) -> Plain:
    """A fetch reply with each `records` as a list of batches in the place of bytes."""
    topics = []
    for topic in reply["responses"]:
        partitions = [
            {**one, "records": batches_in(one["records"], unpacked=unpacked)}
            for one in topic["partitions"]
        ]
        topics.append({**topic, "partitions": partitions})
    return {**reply, "responses": topics}


def batches_in(records: bytes | None, *, unpacked: bool = False) -> list[Plain] | None:
    """Stored bytes as batches: header fields, checksum right or wrong, payload."""
    if records is None:
        return None
    batches: list[Plain] = []
    end = 0
    for header in read_headers(records):
        start = header.pop("position")
        end = start + 12 + header["batch_length"]
        batch: dict[str, Any] = {**header, "payload": records[start + HEADER.size : end]}
        batch["checksum_is_right"] = header["crc"] == checksum(records[start:end])
        if header["attributes"] & LOG_APPEND_TIME:
            _hide_clock(batch)
        codec = header["attributes"] & CODEC_MASK
        if unpacked and codec:
            for name in ("batch_length", "crc"):
                del batch[name]
            batch["payload"] = decompress(codec, batch["payload"])
        batches.append(batch)
    batches.append({"rest": records[end:]})
    return batches


def _hide_clock(batch: dict[str, Any]) -> None:
    now_ms = time.time() * 1000
    if abs(batch["max_timestamp"] - now_ms) < CLOCK_TOLERANCE_MS:
        batch["max_timestamp"] = "now"
    del batch["crc"]

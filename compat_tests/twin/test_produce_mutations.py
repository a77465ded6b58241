"""Batches mutated one thing at a time: the same answer, and afterwards the same log.

Every mutation goes to a partition of its own, so that one difference does not hide the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compat_tests.twin.batches import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD
from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation, Explain
from compat_tests.twin.logs import compare_logs
from compat_tests.twin.mutations import (
    HEADER_VALUES,
    compression_mutations,
    header_mutations,
    record_mutations,
    size_and_checksum_mutations,
)
from compat_tests.twin.requests import produce
from compat_tests.twin.topics import Twin

VERSION = 9
KINDS = {
    "create-time": {},
    "log-append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
}

kinds = pytest.mark.parametrize("kind", KINDS)
codecs = pytest.mark.parametrize("codec", [0, GZIP], ids=CODEC_NAMES.get)


def compare(
    twin: Twin,
    talk: Conversation,
    kind: str,
    mutations: Sequence[tuple[str, bytes]],
    explain: Explain | None = None,
) -> None:
    """Both brokers get each mutation, and must answer alike and then hold the same bytes.

    Args:
        explain: gives the deviation for two answers that differ; such partitions are not read.
    """
    topic = twin.create_topic(partitions=len(mutations), configs=KINDS[kind])
    alike: dict[int, str] = {}
    with all_cases() as cases:
        for partition, (name, records) in enumerate(mutations):
            with cases.case(name):
                body = produce(topic, {partition: records})
                pair = talk.ask("produce", VERSION, body, deviation=explain)
                if code_of(pair.kafka) == code_of(pair.other):
                    alike[partition] = name
        believed = {
            partition: name
            for partition, name in alike.items()
            if explain is not None and kind == "create-time" and "timestamp" in name
        }
        with cases.case("the logs"):
            compare_logs(talk, topic, {key: alike[key] for key in alike.keys() - believed.keys()})
        with cases.case("the logs where timestamps were changed"):
            compare_logs(talk, topic, believed, deviation="D-006")


def code_of(reply: Plain) -> str:
    return str(reply["responses"][0]["partition_responses"][0]["error_code"])


def by_kind(kind: str) -> Explain:
    """What is inside a batch: not looked at on ordinary topics, looked at closely on others."""

    def explain(kafka: Plain, other: Plain) -> str | None:
        codes = code_of(kafka), code_of(other)
        if kind != "compacted" and codes[0] != "none" and codes[1] == "none":
            return "D-006"
        if kind == "compacted" and codes in SAID_OTHERWISE:
            return "D-007"
        return None

    return explain


# Kafka's answer and klamm's, where klamm opens the records.
SAID_OTHERWISE = {
    ("unknown_server_error", "invalid_record"),
    ("none", "invalid_record"),
    ("none", "unknown_server_error"),
}


@kinds
@codecs
@pytest.mark.parametrize("field", HEADER_VALUES)
def test_header_fields(twin: Twin, talk: Conversation, kind: str, codec: int, field: str) -> None:
    explain = by_kind(kind) if "timestamp" in field else None
    compare(twin, talk, kind, list(header_mutations(field, codec)), explain)


@kinds
@codecs
def test_sizes_and_checksums(twin: Twin, talk: Conversation, kind: str, codec: int) -> None:
    compare(twin, talk, kind, list(size_and_checksum_mutations(codec)))


@kinds
@codecs
def test_records(twin: Twin, talk: Conversation, kind: str, codec: int) -> None:
    compare(twin, talk, kind, list(record_mutations(codec)), by_kind(kind))


@kinds
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES.get)
def test_compressed_bytes(twin: Twin, talk: Conversation, kind: str, codec: int) -> None:
    compare(twin, talk, kind, list(compression_mutations(codec)), by_kind(kind))

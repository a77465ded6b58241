"""Bytes that are no request: the same reply from both brokers, or both close the connection."""

from __future__ import annotations

import random
import struct

import pytest

from compat_tests.twin.cases import all_cases
from compat_tests.twin.codec import Plain, api_key, versions
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.samples import (
    EVERY_REQUEST,
    NEWEST_REQUESTS,
    SAMPLES,
    arrays_of,
    body_start,
    is_flexible,
    sample_frame,
    with_length,
)
from compat_tests.twin.topics import Twin

PATIENCE_S = 5.0

every_request = pytest.mark.parametrize(("api", "version"), EVERY_REQUEST)
newest_requests = pytest.mark.parametrize(("api", "version"), NEWEST_REQUESTS)
flexible_requests = pytest.mark.parametrize(
    ("api", "version"), [one for one in NEWEST_REQUESTS if is_flexible(*one)]
)


# What is damaged may still ask for a coordinator, and Kafka makes its topic then.
pytestmark = pytest.mark.usefixtures("coordinated", "transactional")


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def answered(
    talk: Conversation,
    api: str,
    version: int,
    correlation_id: int = 1,
    deviation: str | None = None,
) -> None:
    """Both give the same reply, or both close."""

    def explain(kafka: Plain, other: Plain) -> str | None:
        both_listed = kafka.get("api_keys") and other.get("api_keys")
        return "D-001" if both_listed else deviation

    talk.receive(
        *(api, version),
        correlation_id=correlation_id,
        patience_s=PATIENCE_S,
        prepare=_without_existing_topics,
        deviation=explain,
    )


def _without_existing_topics(reply: Plain) -> Plain:
    """A damaged request may ask for everything, and there is much of other tests."""
    if any("partitions" in one for one in reply.get("topics", ())):
        topics = [one for one in reply["topics"] if one.get("error_code") != "none"]
        return {**reply, "topics": topics}
    if "replica_election_results" in reply:
        named = [one for one in reply["replica_election_results"] if one["partition_result"]]
        return {**reply, "replica_election_results": named}
    if "config_resources" in reply:
        return {**reply, "config_resources": []}
    if any("log_dir" in one for one in reply.get("results", ())):
        return {**reply, "results": [{**one, "topics": []} for one in reply["results"]]}
    return reply


def compare(
    twin: Twin, api: str, version: int, payload: bytes, deviation: str | None = None
) -> None:
    with twin.conversation() as talk:
        talk.send_raw(framed(payload))
        answered(talk, api, version, deviation=deviation)


def closed_after(twin: Twin, data: bytes) -> None:
    with twin.conversation() as talk:
        talk.send_raw(data)
        talk.expect_closed()


@every_request
def test_samples_are_valid(talk: Conversation, api: str, version: int) -> None:
    """What the other tests damage gets an answer while it is whole."""
    talk.send_raw(framed(sample_frame(api, version)))
    for side in talk.sides:
        assert talk.connection(side).receive_frame() is not None


@pytest.mark.parametrize("key", [-1, -32768, 4, 5, 6, 7, 52, 56, 58, 62, 67, 70, 94, 1000, 32767])
@pytest.mark.parametrize("version", [0, 1, 9])
def test_unknown_apis(twin: Twin, key: int, version: int) -> None:
    """Keys that were never given, that were taken away, and those of controllers alone."""
    header = struct.pack(">hhih", key, version, 1, 4) + b"twin"
    closed_after(twin, framed(header + b"\x00"))
    closed_after(twin, framed(header + bytes(100)))


@pytest.mark.parametrize("api", [api for api in SAMPLES if api != "api_versions"])
def test_unknown_versions(twin: Twin, api: str) -> None:
    served = versions(api)
    with all_cases() as cases:
        for version in sorted({-32768, -1, served[0] - 1, served[-1] + 1, 100, 32767}):
            with cases.case(f"version {version}"):
                header = struct.pack(">hhih", api_key(api), version, 1, 4) + b"twin"
                body = sample_frame(api, served[-1])[len(header) :]
                closed_after(twin, framed(header + body))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_versions_that_are_listed_but_gone(twin: Twin, version: int) -> None:
    header = struct.pack(">hhih", 0, version, 1, 4) + b"twin"
    closed_after(twin, framed(header + struct.pack(">hii", 1, 1000, 0)))


@every_request
def test_cut_off(twin: Twin, api: str, version: int) -> None:
    whole = sample_frame(api, version)
    start = body_start(api, version)
    with all_cases() as cases:
        for size in sorted({start, (start + len(whole)) // 2, len(whole) - 1}):
            with cases.case(f"{size} of {len(whole)} bytes"):
                compare(twin, api, version, whole[:size])


@newest_requests
def test_cut_off_everywhere(twin: Twin, api: str, version: int) -> None:
    whole = sample_frame(api, version)
    with all_cases() as cases:
        for size in range(min(len(whole), 80)):
            with cases.case(f"{size} of {len(whole)} bytes"):
                compare(twin, api, version, whole[:size])


@every_request
def test_bytes_behind_the_request(twin: Twin, api: str, version: int) -> None:
    """Kafka does not look at them."""
    with all_cases() as cases:
        for rest in (b"\x00", b"\xff" * 7, bytes(200)):
            with cases.case(f"{len(rest)} bytes more"):
                compare(twin, api, version, sample_frame(api, version) + rest)


@every_request
def test_lists_that_are_null_or_empty(twin: Twin, api: str, version: int) -> None:
    with all_cases() as cases:
        for array in arrays_of(api, version):
            for length in (-1, 0):
                with cases.case(f"{array.name} of length {length}"):
                    frame = with_length(array, length, flexible=is_flexible(api, version))
                    compare(twin, api, version, frame, EMPTY_LISTS.get((api, array.name, length)))


EMPTY_LISTS = {("add_partitions_to_txn", "transactions", 0): "D-030"}


@every_request
def test_lists_that_say_too_much(twin: Twin, api: str, version: int) -> None:
    """Where a list may be null, Kafka takes every negative length for that."""
    with all_cases() as cases:
        for array in arrays_of(api, version):
            for length in (1, 100_000, 2147483646, -2, -2147483648):
                null = version >= NULLABLE_SINCE.get((api, array.name), 99) and length < 0
                with cases.case(f"{array.name} of length {length}"):
                    frame = with_length(array, length, flexible=is_flexible(api, version))
                    compare(twin, api, version, frame, "D-010" if null else None)


NULLABLE_SINCE = {
    ("metadata", "topics"): 1,
    ("describe_configs", "resources[].configuration_keys"): 0,
    ("describe_log_dirs", "topics"): 1,
    ("elect_leaders", "topic_partitions"): 0,
    ("list_partition_reassignments", "topics"): 0,
    ("offset_fetch", "topics"): 2,
    ("offset_fetch", "groups[].topics"): 8,
    ("consumer_group_heartbeat", "subscribed_topic_names"): 0,
    ("consumer_group_heartbeat", "topic_partitions"): 0,
}


# The session id, and an operation.
CHANGED_BYTES = {("fetch", 28): "D-005", ("incremental_alter_configs", 45): "D-051"}


@newest_requests
def test_every_byte_changed(twin: Twin, api: str, version: int) -> None:
    """One bit of each byte of the body turned over: a reply or the end, the same from both.

    Letters stay letters; what is not UTF-8 has its own test.
    """
    whole = sample_frame(api, version)
    with all_cases() as cases:
        for at in range(body_start(api, version), min(len(whole), 90)):
            bit = 0x01 if chr(whole[at]).isprintable() else 0x80
            changed = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
            with cases.case(f"byte {at} of {len(whole)}"):
                compare(twin, api, version, changed, CHANGED_BYTES.get((api, at)))


@pytest.mark.parametrize(("api", "version"), [("list_offsets", 1), ("metadata", 12)])
def test_text_that_is_not_utf_8(twin: Twin, api: str, version: int) -> None:
    """Kafka puts a replacement character in its place."""
    whole = sample_frame(api, version)
    name = {"list_offsets": b"no-such-topic", "metadata": b"a b"}[api]
    for wrong in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        damaged = wrong + name[len(wrong) :]
        compare(twin, api, version, whole.replace(name, damaged), "D-009")


@newest_requests
def test_the_other_kind_of_header(twin: Twin, api: str, version: int) -> None:
    """A tag section where there is none, and none where there should be one.

    In the case of Metadata the rest is a request for all topics, with bytes behind it.
    """
    whole = sample_frame(api, version)
    end = body_start(api, version)
    with_tags = whole[: end - 1] if is_flexible(api, version) else whole[:end] + b"\x00"
    compare(twin, api, version, with_tags + whole[end:])


HEADERS = {
    "null client id": struct.pack(">h", -1) + b"\x00",
    "empty client id": struct.pack(">h", 0) + b"\x00",
    "client id of length -2": struct.pack(">h", -2) + b"\x00",
    "client id longer than the frame": struct.pack(">h", 32767) + b"twin\x00",
    "client id that is not UTF-8": struct.pack(">h", 2) + b"\xff\xfe\x00",
    "an unknown tag": struct.pack(">h", 1) + b"t\x01\x09\x02ab",
    "two unknown tags": struct.pack(">h", 1) + b"t\x02\x09\x02ab\x0a\x00",
    "tags in the wrong order": struct.pack(">h", 1) + b"t\x02\x0a\x00\x09\x02ab",
    "the same tag twice": struct.pack(">h", 1) + b"t\x02\x09\x00\x09\x00",
    "a tag longer than the frame": struct.pack(">h", 1) + b"t\x01\x09\x7fab",
    "more tags than there are": struct.pack(">h", 1) + b"t\x7f",
    "an endless number of tags": struct.pack(">h", 1) + b"t\xff\xff\xff\xff\xff\xff",
}
HEADER_DEVIATIONS = {
    "client id of length -2": "D-010",
    "client id that is not UTF-8": "D-009",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers(twin: Twin, name: str) -> None:
    body = sample_frame("metadata", 12)[body_start("metadata", 12) :]
    header = struct.pack(">hhi", 3, 12, 1) + HEADERS[name]
    compare(twin, "metadata", 12, header + body, HEADER_DEVIATIONS.get(name))


BODY_TAGS = {
    "an unknown tag": b"\x01\x63\x02ab",
    "two unknown tags": b"\x02\x63\x00\x64\x01x",
    "the same tag twice": b"\x02\x63\x00\x63\x00",
    "in the wrong order": b"\x02\x64\x00\x63\x00",
    "longer than the frame": b"\x01\x63\x50ab",
    "more than there are": b"\x05\x63\x00",
}


@pytest.mark.parametrize("name", BODY_TAGS)
@flexible_requests
def test_tagged_fields(twin: Twin, api: str, version: int, name: str) -> None:
    """Tags that nobody knows are skipped (KIP-482)."""
    whole = sample_frame(api, version)
    assert whole.endswith(b"\x00"), "a flexible request ends with its tags, of which it has none"
    compare(twin, api, version, whole[:-1] + BODY_TAGS[name])


HELLO = bytes.fromhex("16030100c4010000c00303") + bytes(range(180))
NOT_FRAMES = {
    "TLS 1.0 record": HELLO,
    "TLS 1.2 record": b"\x16\x03\x03" + HELLO[3:],
    "HTTP GET": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP POST": b"POST /topics HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "size -1": struct.pack(">i", -1),
    "smallest size": struct.pack(">i", -(1 << 31)),
    "size above the limit": struct.pack(">i", 104_857_601),
    "largest size": struct.pack(">i", (1 << 31) - 1),
    "all ones": b"\xff" * 64,
}


@pytest.mark.parametrize("name", NOT_FRAMES)
def test_no_frames(twin: Twin, name: str) -> None:
    closed_after(twin, NOT_FRAMES[name])


@pytest.mark.parametrize("size", range(12))
def test_frames_smaller_than_a_header(twin: Twin, size: int) -> None:
    for filling in (b"\x00", b"\xff", b"\x12"):
        closed_after(twin, framed(filling * size))


@pytest.mark.parametrize("seed", range(20))
def test_garbage_in_a_frame(twin: Twin, seed: int) -> None:
    """Random keys and versions: nothing that a broker would recognise."""
    noise = random.Random(seed)
    header = struct.pack(">h", noise.randrange(200, 30_000))
    closed_after(twin, framed(header + noise.randbytes(noise.randrange(10, 200))))


def test_half_a_frame(twin: Twin, talk: Conversation) -> None:
    """The rest may still come: both wait, and then answer."""
    whole = framed(sample_frame("metadata", 12))
    for cut in (1, 3, 4, 10, len(whole) - 1):
        talk.send_raw(whole[:cut])
        assert all(talk.connection(side).is_silent(0.05) for side in talk.sides)
        talk.send_raw(whole[cut:])
        answered(talk, "metadata", 12)


def test_byte_by_byte_and_all_at_once(talk: Conversation) -> None:
    whole = framed(sample_frame("list_offsets", 7))
    for at in range(len(whole)):
        talk.send_raw(whole[at : at + 1])
    answered(talk, "list_offsets", 7)
    talk.send_raw(b"".join(framed(sample_frame("list_offsets", 7, count)) for count in range(20)))
    for count in range(20):
        answered(talk, "list_offsets", 7, count)


def test_replies_before_the_bad_frame_arrive(twin: Twin) -> None:
    good, bad = framed(sample_frame("list_offsets", 7)), framed(b"\xff" * 20)
    with twin.conversation() as talk:
        talk.send_raw(good)
        answered(talk, "list_offsets", 7)
        talk.send_raw(bad + good)
        talk.expect_closed()

"""Group requests as bytes, written by hand, for the bare-socket clients.

Old versions without flexible fields (KIP-482): short to write, and every broker serves them.
"""

from __future__ import annotations

import struct

FIND_COORDINATOR, OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 10, 8, 11, 12, 14

CORRELATION_ID = 7
CLIENT_ID = b"klamm-benchmarks"
SESSION_TIMEOUT_MS = 30_000
# Where the error code stands, counted from the correlation id of the reply.
FIND_COORDINATOR_ERROR_AT = 4
AFTER_THROTTLE_ERROR_AT = 8


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def find_coordinator(group: str) -> bytes:
    """FindCoordinator 0."""
    return _frame(FIND_COORDINATOR, 0, _string(group))


def offset_commit(group: str, topic: str) -> bytes:
    """OffsetCommit 5 of one partition, by somebody who is no member."""
    partition = struct.pack(">iq", 0, 42) + _string("")
    topics = struct.pack(">i", 1) + _string(topic) + struct.pack(">i", 1) + partition
    return _frame(OFFSET_COMMIT, 5, _string(group) + struct.pack(">i", -1) + _string("") + topics)


def offset_commit_error_at(topic: str) -> int:
    """Where the partition's error code stands in the reply to `offset_commit`."""
    # correlation id, throttle, topic count, name, partition count, index
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4


def join_group(group: str) -> bytes:
    """JoinGroup 3, which gives a member id at once."""
    body = _string(group) + struct.pack(">ii", SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS)
    # No member id yet, the type of the protocol, and one assignor with nothing to say.
    body += _string("") + _string("benchmark") + struct.pack(">i", 1) + _string("one") + _bytes(b"")
    return _frame(JOIN_GROUP, 3, body)


def joined(reply: bytes) -> tuple[int, str]:
    """Generation and member id from the reply to `join_group`, after its error was checked."""
    (generation,) = struct.unpack_from(">i", reply, 10)
    at = 14
    names = []
    for _ in range(3):
        (length,) = struct.unpack_from(">h", reply, at)
        names.append(reply[at + 2 : at + 2 + length].decode())
        at += 2 + length
    _protocol, _leader, member_id = names
    return generation, member_id


def sync_group(group: str, generation: int, member_id: str) -> bytes:
    """SyncGroup 2 of a leader that assigns something to itself."""
    assignment = struct.pack(">i", 1) + _string(member_id) + _bytes(b"everything")
    body = _string(group) + struct.pack(">i", generation) + _string(member_id) + assignment
    return _frame(SYNC_GROUP, 2, body)


def heartbeat(group: str, generation: int, member_id: str) -> bytes:
    """Heartbeat 2."""
    body = _string(group) + struct.pack(">i", generation) + _string(member_id)
    return _frame(HEARTBEAT, 2, body)

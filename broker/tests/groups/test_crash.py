"""A power cut in the middle of commits: what was acknowledged is there, and nothing is made up.

Method: a disk in memory that forgets, tears or keeps what was not synced. Offsets of a group only
grow here, so what is recovered must lie between the last one acknowledged and the last one sent.
"""

from __future__ import annotations

import pytest

from klamm.broker.testing import running_broker
from klamm.broker.tests.groups.conftest import FEW_PARTITIONS
from klamm.broker.tests.groups.group_client import (
    COMMIT_VERSION,
    become_leader,
    commit_codes,
    commit_request,
    committed,
    find_coordinator,
    heartbeat,
)
from klamm.broker.tests.raw_client import RawClient, create_topic
from klamm.log.memory_fs import (
    MemoryFileSystem,
    SurvivingBytes,
    keep_bytes,
    keep_names,
    lose_bytes,
    lose_names,
    tear_bytes,
    zero_bytes,
)
from klamm.wire.errors import ErrorCode

DATA_DIR = "/data"
GROUPS = ("a", "b", "c", "d", "e")
SENT = 50


@pytest.mark.parametrize("acknowledged", [0, 1, 13, SENT])
@pytest.mark.parametrize("surviving", [lose_bytes, tear_bytes, zero_bytes, keep_bytes])
def test_commits_through_a_power_cut(surviving: SurvivingBytes, acknowledged: int) -> None:
    fs = MemoryFileSystem()
    last_acknowledged = dict.fromkeys(GROUPS, -1)
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=fs) as broker:
        with RawClient(broker) as client:
            create_topic(client, "t")
            find_coordinator(client)
            joined = become_leader(client, "members")
            turns = [(GROUPS[number % len(GROUPS)], number) for number in range(SENT)]
            client.send(
                *(commit_request(group_id, {"t": {0: offset}}) for group_id, offset in turns),
                version=COMMIT_VERSION,
            )
            for group_id, offset in turns[:acknowledged]:
                assert commit_codes(client.receive()[1]) == {ErrorCode.NONE}
                last_acknowledged[group_id] = offset
        broker.kill()
    names = keep_names if surviving is keep_bytes else lose_names
    found = fs.after_crash(surviving, names)
    with running_broker(DATA_DIR, FEW_PARTITIONS, fs=found) as broker, RawClient(broker) as client:
        for group_id in GROUPS:
            offsets = committed(client, group_id)
            recovered = offsets["t"][0] if offsets else -1
            assert last_acknowledged[group_id] <= recovered < SENT
            assert recovered == -1 or recovered % len(GROUPS) == GROUPS.index(group_id)
        assert heartbeat(client, "members", joined) is ErrorCode.NONE

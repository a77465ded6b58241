"""What Kafka's quorum (KRaft) keeps in the metadata log beside the metadata: control records.

A broker that is alone needs none of it. But an Apache Kafka that is started on the directory later
reads who votes, and goes on in an epoch after the last one. So klamm writes what a leader writes:
each start is an election that it wins, with an epoch of its own, and the first batch of an epoch
says so. Where the log names no voters yet, that batch names this node as the only one (KIP-853).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from klamm.log.errors import CorruptFileError
from klamm.log.fs import FileSystem, read_file
from klamm.log.layout import QUORUM_STATE
from klamm.wire.codec import decode, encode
from klamm.wire.messages.stored.control import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    VotersRecord,
    VotersVoter,
)
from klamm.wire.records.control import ControlRecordType, encode_control_key, parse_control_type
from klamm.wire.records.record import Record, build_batch
from klamm.wire.schema import Message

# Voters are named in the log, and not in each node's settings.
KRAFT_VERSION = 1
RECORD_VERSION = 0
# Where the controller listens in the server.properties that Kafka ships. klamm opens no such port,
# and a Kafka that is started here writes down its own.
CONTROLLER = Endpoint(name="CONTROLLER", host="localhost", port=9093)


@dataclass(slots=True)
class Quorum:
    """Who votes, and the last epoch that is known.

    Attributes:
        voters: the nodes, as the last leader named them.
        is_settled: whether the log or a node's settings name them already.
    """

    epoch: int = 0
    voters: set[int] = field(default_factory=set)
    is_settled: bool = False

    def read_state(self, fs: FileSystem, directory: str) -> None:
        """Take in the last election that Kafka has noted, if one was here.

        Raises:
            CorruptFileError: it can't be understood.
        """
        path = f"{directory}/{QUORUM_STATE}"
        if not fs.exists(path):
            return
        try:
            state = json.loads(read_file(fs, path))
            self.epoch = max(self.epoch, int(state["leaderEpoch"]))
            # Only where they are in each node's settings.
            self.voters.update(int(voter["voterId"]) for voter in state.get("currentVoters") or ())
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(path, f"not the state of a quorum: {error}") from error
        self.is_settled = True

    def see(self, record: Record) -> None:
        """Take in a control record. Raises WireError."""
        control_type = parse_control_type(record.key)
        value = record.value or b""
        if control_type is ControlRecordType.LEADER_CHANGE:
            # The version is the first field of the message itself.
            version = int.from_bytes(value[:2], "big", signed=True)
            change: LeaderChangeMessage = decode(LeaderChangeMessage, version, value)
            self.voters = {voter.voter_id for voter in change.voters}
        elif control_type is ControlRecordType.KRAFT_VOTERS:
            named: VotersRecord = decode(VotersRecord, RECORD_VERSION, value)
            self.voters = {voter.voter_id for voter in named.voters}
            self.is_settled = True

    def election(self, node_id: int, directory_id: UUID, *, base_offset: int, now_ms: int) -> bytes:
        """The batch that begins the next epoch, with this node as leader."""
        self.epoch += 1
        batch = build_batch(
            [
                (encode_control_key(control_type), encode(message, RECORD_VERSION), (), now_ms)
                for control_type, message in self._election(node_id, directory_id)
            ],
            base_offset=base_offset,
            control=True,
            partition_leader_epoch=self.epoch,
        )
        self.voters = {node_id}
        self.is_settled = True
        return batch

    def _election(
        self, node_id: int, directory_id: UUID
    ) -> Iterator[tuple[ControlRecordType, Message]]:
        voters = [LeaderChangeMessageVoter(voter_id=node_id)]
        yield (
            ControlRecordType.LEADER_CHANGE,
            LeaderChangeMessage(leader_id=node_id, voters=voters, granting_voters=voters),
        )
        if self.is_settled:
            return
        yield ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=KRAFT_VERSION)
        voter = VotersVoter(
            voter_id=node_id,
            voter_directory_id=directory_id,
            endpoints=[CONTROLLER],
            k_raft_version_feature=KRaftVersionFeature(max_supported_version=KRAFT_VERSION),
        )
        yield ControlRecordType.KRAFT_VOTERS, VotersRecord(voters=[voter])

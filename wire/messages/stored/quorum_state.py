"""The vote of a node, as the file `quorum-state` keeps it."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int32, int64, string, uuid


class Voter(Struct):
    voter_id: int = field(int32)


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    cluster_id: str = field(string, "0")
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)
    voted_id: int = field(int32, default=-1)
    voted_directory_id: UUID = field(uuid, "1+")
    applied_offset: int = field(int64, "0")
    current_voters: list[Voter] | None = array(Voter, "0", nullable="0")

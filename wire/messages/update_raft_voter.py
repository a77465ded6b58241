"""UpdateRaftVoter (API key 82), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int16, int32, string, uint16, uuid


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class KRaftVersionFeature(Struct):
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class UpdateRaftVoterRequest(Message, api_key=82, versions="0", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    current_leader_epoch: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid)
    listeners: list[Listener] = array(Listener)
    k_raft_version_feature: KRaftVersionFeature = field(KRaftVersionFeature)


class CurrentLeader(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)
    host: str = field(string)
    port: int = field(int32)


class UpdateRaftVoterResponse(Message, api_key=82, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    current_leader: CurrentLeader = field(CurrentLeader, tag=0)

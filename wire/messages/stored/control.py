"""The bodies of control records."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class ControlRecordTypeSchema(Message, versions="0"):
    type: int = field(int16)


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: int = field(int32)


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)
    k_raft_version: int = field(int16)


class LeaderChangeMessageVoter(Struct):
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid, "1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = field(int16)
    leader_id: int = field(int32)
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)
    last_contained_log_timestamp: int = field(int64)


class Endpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class KRaftVersionFeature(Struct):
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class VotersVoter(Struct):
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid)
    endpoints: list[Endpoint] = array(Endpoint)
    k_raft_version_feature: KRaftVersionFeature = field(KRaftVersionFeature)


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)
    voters: list[VotersVoter] = array(VotersVoter)

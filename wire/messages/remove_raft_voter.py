"""RemoveRaftVoter (API key 81), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, field, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, api_key=81, versions="0", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid)


class RemoveRaftVoterResponse(Message, api_key=81, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")

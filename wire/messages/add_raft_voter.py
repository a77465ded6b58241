"""AddRaftVoter (API key 80), versions 0-1, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    bool_,
    field,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    timeout_ms: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid)
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = field(bool_, "1+", default=True)


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")

"""JoinGroup (API key 11), versions 0-9, flexible from 6."""

from klamm.wire.schema import Message, Struct, array, bool_, bytes_, field, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(bytes_)


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    group_id: str = field(string)
    session_timeout_ms: int = field(int32)
    rebalance_timeout_ms: int = field(int32, "1+", default=-1)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "5+", nullable="5+", default=None)
    protocol_type: str = field(string)
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = field(string, "8+", nullable="8+", default=None)


class JoinGroupResponseMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "5+", nullable="5+", default=None)
    metadata: bytes = field(bytes_)


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = field(int32, "2+")
    error_code: int = field(int16)
    generation_id: int = field(int32, default=-1)
    protocol_type: str | None = field(string, "7+", nullable="7+", default=None)
    protocol_name: str | None = field(string, nullable="7+")
    leader: str = field(string)
    skip_assignment: bool = field(bool_, "9+")
    member_id: str = field(string)
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)

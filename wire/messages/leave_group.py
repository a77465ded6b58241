"""LeaveGroup (API key 13), versions 0-5, flexible from 4."""

from klamm.wire.schema import Message, Struct, array, field, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, nullable="3+", default=None)
    reason: str | None = field(string, "5+", nullable="5+", default=None)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+"):
    group_id: str = field(string)
    member_id: str = field(string, "0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, nullable="3+")
    error_code: int = field(int16)


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16)
    members: list[MemberResponse] = array(MemberResponse, "3+")

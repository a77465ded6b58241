"""ListGroups (API key 16), versions 0-5, flexible from 3."""

from klamm.wire.schema import Message, Struct, array, field, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+"):
    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


class ListedGroup(Struct):
    group_id: str = field(string)
    protocol_type: str = field(string)
    group_state: str = field(string, "4+")
    group_type: str = field(string, "5+")


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16)
    groups: list[ListedGroup] = array(ListedGroup)

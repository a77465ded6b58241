"""FindCoordinator (API key 10), versions 0-6, flexible from 3."""

from klamm.wire.schema import Message, Struct, array, field, int8, int16, int32, string


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible="3+"):
    key: str = field(string, "0-3")
    key_type: int = field(int8, "1+")
    coordinator_keys: list[str] = array(string, "4+")


class Coordinator(Struct):
    key: str = field(string)
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="4+")


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "0-3")
    error_message: str | None = field(string, "1-3", nullable="1-3")
    node_id: int = field(int32, "0-3")
    host: str = field(string, "0-3")
    port: int = field(int32, "0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")

"""BrokerHeartbeat (API key 63), versions 0-2, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, array, bool_, field, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, api_key=63, versions="0-2", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    current_metadata_offset: int = field(int64)
    want_fence: bool = field(bool_)
    want_shut_down: bool = field(bool_)
    offline_log_dirs: list[UUID] = array(uuid, "1+", tag=0)
    cordoned_log_dirs: list[UUID] | None = array(uuid, "2+", nullable="2+", tag=1, default=None)


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    is_caught_up: bool = field(bool_)
    is_fenced: bool = field(bool_, default=True)
    should_shut_down: bool = field(bool_)

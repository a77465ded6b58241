"""BrokerRegistration (API key 62), versions 0-4, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    bool_,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class Feature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class BrokerRegistrationRequest(Message, api_key=62, versions="0-4", flexible="0+"):
    broker_id: int = field(int32)
    cluster_id: str = field(string)
    incarnation_id: UUID = field(uuid)
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = field(string, nullable="0+")
    is_migrating_zk_broker: bool = field(bool_, "1+")
    log_dirs: list[UUID] = array(uuid, "2+")
    previous_broker_epoch: int = field(int64, "3+", default=-1)


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    broker_epoch: int = field(int64, default=-1)

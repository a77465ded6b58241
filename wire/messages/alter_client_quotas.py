"""AlterClientQuotas (API key 49), versions 0-1, flexible from 1."""

from klamm.wire.schema import Message, Struct, array, bool_, field, float64, int16, int32, string


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class OpData(Struct):
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(bool_)


class RequestEntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    entries: list[RequestEntryData] = array(RequestEntryData)
    validate_only: bool = field(bool_)


class ResponseEntryData(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    entries: list[ResponseEntryData] = array(ResponseEntryData)

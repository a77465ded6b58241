"""DescribeClientQuotas (API key 48), versions 0-1, flexible from 1."""

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    bool_,
    field,
    float64,
    int8,
    int16,
    int32,
    string,
)


class ComponentData(Struct):
    entity_type: str = field(string)
    match_type: int = field(int8)
    match: str | None = field(string, nullable="0+")


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    components: list[ComponentData] = array(ComponentData)
    strict: bool = field(bool_)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class ValueData(Struct):
    key: str = field(string)
    value: float = field(float64)


class EntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")

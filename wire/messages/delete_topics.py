"""DeleteTopics (API key 20), versions 1-6, flexible from 4."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = field(string, nullable="6+", default=None)
    topic_id: UUID = field(uuid)


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+"):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5")
    timeout_ms: int = field(int32)


class DeletableTopicResult(Struct):
    name: str | None = field(string, nullable="6+")
    topic_id: UUID = field(uuid, "6+")
    error_code: int = field(int16)
    error_message: str | None = field(string, "5+", nullable="5+", default=None)


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: int = field(int32)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)

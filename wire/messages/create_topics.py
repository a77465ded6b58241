"""CreateTopics (API key 19), versions 2-7, flexible from 5."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, bool_, field, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Struct):
    partition_index: int = field(int32)
    broker_ids: list[int] = array(int32)


class CreatableTopicConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class CreatableTopic(Struct):
    name: str = field(string)
    num_partitions: int = field(int32)
    replication_factor: int = field(int16)
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible="5+"):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = field(int32, default=60000)
    validate_only: bool = field(bool_)


class CreatableTopicConfigs(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="5+")
    read_only: bool = field(bool_)
    config_source: int = field(int8, default=-1)
    is_sensitive: bool = field(bool_)


class CreatableTopicResult(Struct):
    name: str = field(string)
    topic_id: UUID = field(uuid, "7+")
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    topic_config_error_code: int = field(int16, "5+", tag=0)
    num_partitions: int = field(int32, "5+", default=-1)
    replication_factor: int = field(int16, "5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, "5+", nullable="5+")


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    throttle_time_ms: int = field(int32)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)

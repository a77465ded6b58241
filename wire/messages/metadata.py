"""Metadata (API key 3), versions 0-13, flexible from 9."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, bool_, field, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    topic_id: UUID = field(uuid, "10+")
    name: str | None = field(string, nullable="10+")


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = field(bool_, "4+", default=True)
    include_cluster_authorized_operations: bool = field(bool_, "8-10")
    include_topic_authorized_operations: bool = field(bool_, "8+")


class MetadataResponseBroker(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, "1+", nullable="1+", default=None)


class MetadataResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, "7+", default=-1)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "5+")


class MetadataResponseTopic(Struct):
    error_code: int = field(int16)
    name: str | None = field(string, nullable="12+")
    topic_id: UUID = field(uuid, "10+")
    is_internal: bool = field(bool_, "1+")
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = field(int32, "8+", default=-2147483648)


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: int = field(int32, "3+")
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = field(string, "2+", nullable="2+", default=None)
    controller_id: int = field(int32, "1+", default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = field(int32, "8-10", default=-2147483648)
    error_code: int = field(int16, "13+")

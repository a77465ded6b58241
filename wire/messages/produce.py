"""Produce (API key 0), versions 3-13, flexible from 9."""

from uuid import UUID

from klamm.wire.schema import (
    Message,
    Records,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    records,
    string,
    uuid,
)


class PartitionProduceData(Struct):
    index: int = field(int32)
    records: Records | None = field(records, nullable="0+")


class TopicProduceData(Struct):
    name: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+"):
    transactional_id: str | None = field(string, nullable="3+", default=None)
    acks: int = field(int16)
    timeout_ms: int = field(int32)
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field(int32)
    batch_index_error_message: str | None = field(string, nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


class PartitionProduceResponse(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    base_offset: int = field(int64)
    log_append_time_ms: int = field(int64, default=-1)
    log_start_offset: int = field(int64, "5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+")
    error_message: str | None = field(string, "8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="10+", default=None)


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = field(int32)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)

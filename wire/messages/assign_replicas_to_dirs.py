"""AssignReplicasToDirs (API key 73), version 0, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, field, int16, int32, int64, uuid


class RequestPartitionData(Struct):
    partition_index: int = field(int32)


class RequestTopicData(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


class RequestDirectoryData(Struct):
    id: UUID = field(uuid)
    topics: list[RequestTopicData] = array(RequestTopicData)


class AssignReplicasToDirsRequest(Message, api_key=73, versions="0", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    directories: list[RequestDirectoryData] = array(RequestDirectoryData)


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class ResponseTopicData(Struct):
    topic_id: UUID = field(uuid)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


class ResponseDirectoryData(Struct):
    id: UUID = field(uuid)
    topics: list[ResponseTopicData] = array(ResponseTopicData)


class AssignReplicasToDirsResponse(Message, api_key=73, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    directories: list[ResponseDirectoryData] = array(ResponseDirectoryData)

"""DeleteRecords (API key 21), versions 0-2, flexible from 2."""

from klamm.wire.schema import Message, Struct, array, field, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    partition_index: int = field(int32)
    offset: int = field(int64)


class DeleteRecordsTopic(Struct):
    name: str = field(string)
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = field(int32)


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field(int32)
    low_watermark: int = field(int64)
    error_code: int = field(int16)


class DeleteRecordsTopicResult(Struct):
    name: str = field(string)
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)

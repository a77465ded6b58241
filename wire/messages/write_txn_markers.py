"""WriteTxnMarkers (API key 27), versions 1-2, flexible from 1."""

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    bool_,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
)


class WritableTxnMarkerTopic(Struct):
    name: str = field(string)
    partition_indexes: list[int] = array(int32)


class WritableTxnMarker(Struct):
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    transaction_result: bool = field(bool_)
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = field(int32)
    transaction_version: int = field(int8, "2+")


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(string)
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(int64)
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)

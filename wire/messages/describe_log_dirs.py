"""DescribeLogDirs (API key 35), versions 1-5, flexible from 2."""

from klamm.wire.schema import Message, Struct, array, bool_, field, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    topic: str = field(string)
    partitions: list[int] = array(int32)


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = field(int32)
    partition_size: int = field(int64)
    offset_lag: int = field(int64)
    is_future_key: bool = field(bool_)


class DescribeLogDirsTopic(Struct):
    name: str = field(string)
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    error_code: int = field(int16)
    log_dir: str = field(string)
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = field(int64, "4+", default=-1)
    usable_bytes: int = field(int64, "4+", default=-1)
    is_cordoned: bool = field(bool_, "5+")


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "3+")
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)

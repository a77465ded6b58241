"""AlterReplicaLogDirs (API key 34), versions 1-2, flexible from 2."""

from klamm.wire.schema import Message, Struct, array, field, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    name: str = field(string)
    partitions: list[int] = array(int32)


class AlterReplicaLogDir(Struct):
    path: str = field(string)
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+"):
    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field(string)
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)

"""Streams groups (KIP-1071), as `__consumer_offsets` stores them."""

from klamm.wire.schema import (
    Message,
    Struct,
    array,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
)


class StreamsGroupMetadataKey(Message, api_key=17, versions="0"):
    group_id: str = field(string)


class LastAssignmentConfig(Struct):
    key: str = field(string)
    value: str = field(string)


class StreamsGroupMetadataValue(Message, api_key=17, versions="0", flexible="0+"):
    epoch: int = field(int32)
    metadata_hash: int = field(int64)
    validated_topology_epoch: int = field(int32, tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, nullable="0+", tag=1
    )


class StreamsGroupMemberMetadataKey(Message, api_key=19, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class Endpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class KeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class StreamsGroupMemberMetadataValue(Message, api_key=19, versions="0", flexible="0+"):
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology_epoch: int = field(int32)
    process_id: str = field(string)
    user_endpoint: Endpoint | None = field(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(KeyValue)


class StreamsGroupTargetAssignmentMetadataKey(Message, api_key=20, versions="0"):
    group_id: str = field(string)


class StreamsGroupTargetAssignmentMetadataValue(Message, api_key=20, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)


class StreamsGroupTargetAssignmentMemberKey(Message, api_key=21, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsGroupTargetAssignmentMemberTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = array(int32)


class StreamsGroupTargetAssignmentMemberValue(Message, api_key=21, versions="0", flexible="0+"):
    active_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )


class StreamsGroupCurrentMemberAssignmentKey(Message, api_key=22, versions="0"):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsGroupCurrentMemberAssignmentTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable="0+", tag=0)


class StreamsGroupCurrentMemberAssignmentValue(Message, api_key=22, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    active_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )


class StreamsGroupTopologyKey(Message, api_key=23, versions="0"):
    group_id: str = field(string)


class TopicConfig(Struct):
    key: str = field(string)
    value: str = field(string)


class TopicInfo(Struct):
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: list[TopicConfig] = array(TopicConfig)


class CopartitionGroup(Struct):
    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


class Subtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


class StreamsGroupTopologyValue(Message, api_key=23, versions="0", flexible="0+"):
    epoch: int = field(int32)
    subtopologies: list[Subtopology] = array(Subtopology)

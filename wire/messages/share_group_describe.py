"""ShareGroupDescribe (API key 77), version 1, flexible from 0."""

from uuid import UUID

from klamm.wire.schema import Message, Struct, array, bool_, field, int16, int32, string, uuid


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible="0+"):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = field(bool_)


class TopicPartitions(Struct):
    topic_id: UUID = field(uuid)
    topic_name: str = field(string)
    partitions: list[int] = array(int32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    member_id: str = field(string)
    rack_id: str | None = field(string, nullable="0+", default=None)
    member_epoch: int = field(int32)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: list[str] = array(string)
    assignment: Assignment = field(Assignment)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    assignor_name: str = field(string)
    members: list[Member] = array(Member)
    authorized_operations: int = field(int32, default=-2147483648)


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    groups: list[DescribedGroup] = array(DescribedGroup)

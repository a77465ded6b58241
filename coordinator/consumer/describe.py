"""Consumer groups as ConsumerGroupDescribe shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.member import ConsumerMember
from klamm.coordinator.consumer.update import preferred_assignor
from klamm.coordinator.group import Shard
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER_TYPE = 0
CONSUMER_MEMBER_TYPE = 1


def describe(shard: Shard, group_id: str) -> DescribedGroup:
    """The group, or the error that it is not one of this kind."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        why = "not found" if group is None else "is not a consumer group"
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {why}.",
        )
    supported = shard.settings.group_consumer_assignors
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), supported),
        members=[_member(shard, group, member) for member in group.members.values()],
    )


def _member(shard: Shard, group: ConsumerGroup, member: ConsumerMember) -> Member:
    owned: dict[UUID, list[int]] = {}
    for topic_id, partition in member.owned():
        owned.setdefault(topic_id, []).append(partition)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(shard, owned),
        target_assignment=_assignment(shard, group.target.get(member.member_id, {})),
        member_type=CONSUMER_MEMBER_TYPE if member.classic is None else CLASSIC_MEMBER_TYPE,
    )


def _assignment(shard: Shard, partitions: Mapping[UUID, Iterable[int]]) -> Assignment:
    """Topics are shown by name too, so that those are left out that exist no longer."""
    found = ((shard.topics.find_by_id(topic_id), topic_id) for topic_id in partitions)
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions[topic_id])
            )
            for topic, topic_id in found
            if topic is not None
        ]
    )

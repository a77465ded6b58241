"""JoinGroup to a consumer group."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from uuid import UUID

from klamm.coordinator import migration
from klamm.coordinator.classic.join import KNOWN_MEMBER_ID_VERSION
from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.classic.replies import join_refused
from klamm.coordinator.classic.subscription import CONSUMER_PROTOCOL_TYPE
from klamm.coordinator.consumer.embedded import read_subscription
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.consumer.groups import Groups
from klamm.coordinator.consumer.joining import (
    check_room,
    find_static_member,
    join_static_member,
    new_member_id,
)
from klamm.coordinator.consumer.member import ClassicDetails, ConsumerMember
from klamm.coordinator.consumer.update import ExpressionChange, MemberUpdate
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.group import Shard
from klamm.coordinator.ports import Client, CoordinatorRecord, Topics
from klamm.wire.errors import ErrorCode, WireError
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from klamm.wire.messages.stored.consumer_protocol import ConsumerProtocolSubscription


class ClassicJoins:
    def __init__(self, shard: Shard, groups: Groups) -> None:
        self._shard = shard
        self._groups = groups

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, client: Client
    ) -> JoinGroupResponse:
        """
        Raises:
            CoordinatorError: the request is refused.
        """
        settings = self._shard.settings
        if not (
            settings.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.group_max_session_timeout_ms
        ):
            return join_refused(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        if settings.group_consumer_migration_policy == migration.DISABLED_POLICY:
            raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member_id = request.member_id or new_member_id(self._shard.new_uuid)
        check_room(group, member_id, settings.group_consumer_max_size)
        _check_protocols(group, request)
        is_dynamic = request.group_instance_id is None
        if is_dynamic and not request.member_id and client.api_version >= KNOWN_MEMBER_ID_VERSION:
            # Kafka does not remember the id either: whoever comes with one may join.
            return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)

        written: list[CoordinatorRecord] = []
        before = _joining_member(group, request, member_id, written)
        said = ClassicMember.joining(request, client, member_id)
        subscription = _subscription(said)
        update = self._groups.update(group, before, _said(before, said, subscription), written)
        names_changed = update.store_subscription()
        has_changed = update.update_expression() is not ExpressionChange.NONE or names_changed
        update.update_metadata(has_subscription_changed=has_changed)
        self._move(update, subscription, has_subscription_changed=has_changed)
        return JoinGroupResponse(
            member_id=member_id,
            generation_id=update.member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=said.protocols[0].name,
        )

    def _move(
        self,
        update: MemberUpdate,
        subscription: ConsumerProtocolSubscription,
        *,
        has_subscription_changed: bool,
    ) -> None:
        """Let the member take its step, and store all of it."""
        owned = _owned_partitions(subscription, self._shard.topics)
        group, removals = update.group, self._groups.removals
        replaced = group.static_member(update.member.instance_id)
        if replaced is not None and migration.can_downgrade_by_replacement(
            group, replaced, self._shard.settings
        ):
            # The last member of the consumer protocol is back with the classic one.
            rebalance = group.assignment_epoch < update.group_epoch
            if not rebalance:
                update.reconcile(
                    group.assignment_epoch,
                    group.target_of(update.member),
                    owned,
                    has_subscription_changed=has_subscription_changed,
                )
            members = group.members_with(update.member).values()
            removals.downgrade(group, members, rebalance=rebalance, written=update.records)
            return
        epoch, target = update.update_target()
        update.reconcile(epoch, target, owned, has_subscription_changed=has_subscription_changed)
        group = self._groups.commit(update)
        removals.sessions.end_join(group, update.member.member_id)
        removals.sessions.await_sync(group.group_id, update.member)


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """One of the protocols must be known to all members of the classic protocol, so that the group
    could become a classic one.

    Raises:
        CoordinatorError: INCONSISTENT_GROUP_PROTOCOL.
    """
    common = {protocol.name for protocol in request.protocols}
    for member in group.members.values():
        if member.classic is not None:
            common.intersection_update(each.name for each in member.classic.protocols)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not common:
        raise CoordinatorError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _joining_member(
    group: ConsumerGroup,
    request: JoinGroupRequest,
    member_id: str,
    written: list[CoordinatorRecord],
) -> ConsumerMember:
    """
    Raises:
        CoordinatorError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if request.group_instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if request.member_id:
        return find_static_member(group, request.group_instance_id, member_id)
    return join_static_member(group, request.group_instance_id, member_id, written, is_classic=True)


def _subscription(member: ClassicMember) -> ConsumerProtocolSubscription:
    """
    Raises:
        CoordinatorError: UNKNOWN_SERVER_ERROR, as Kafka says when it cannot read it.
    """
    try:
        return read_subscription(member.protocols[0].metadata)
    except WireError:
        raise CoordinatorError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _said(
    before: ConsumerMember, said: ClassicMember, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """The member with what it says now."""
    return replace(
        before,
        instance_id=said.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=ClassicDetails(said.session_timeout_ms, said.protocols),
    )


def _owned_partitions(
    subscription: ConsumerProtocolSubscription, topics: Topics
) -> dict[UUID, frozenset[int]]:
    """What the member says that it has; topics that are gone do not count."""
    owned: dict[UUID, set[int]] = defaultdict(set)
    for partitions in subscription.owned_partitions:
        topic = topics.find(partitions.topic)
        if topic is not None:
            owned[topic.topic_id].update(partitions.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}

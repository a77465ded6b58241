"""What is wrong with a ConsumerGroupHeartbeat request before any group is looked at."""

from __future__ import annotations

from collections.abc import Collection

from klamm.coordinator.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from klamm.coordinator.errors import CoordinatorError
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# From this version on, the client makes the member id (KIP-1082).
CLIENT_MEMBER_ID_VERSION = 1
NOT_GIVEN_MS = -1

# What Java takes for blank at both ends of a text.
_BLANKS = "".join(map(chr, range(0x21)))


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """
    Raises:
        CoordinatorError: INVALID_REQUEST or UNSUPPORTED_ASSIGNOR; of several reasons, the one
            that Kafka finds first.
    """
    epoch = request.member_epoch
    if api_version >= CLIENT_MEMBER_ID_VERSION or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == LEAVE_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise CoordinatorError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NOT_GIVEN_MS:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def _check_not_blank(value: str | None, name: str) -> None:
    if value is not None and not value.strip(_BLANKS):
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> CoordinatorError:
    return CoordinatorError(ErrorCode.INVALID_REQUEST, message)

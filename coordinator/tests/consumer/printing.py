"""Answers and records of consumer groups as one line each, with names in place of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from klamm.coordinator.consumer.embedded import read_assignment, read_subscription
from klamm.coordinator.consumer.state import MemberState
from klamm.coordinator.ports import CoordinatorRecord
from klamm.wire.errors import ErrorCode, WireError
from klamm.wire.messages.stored.classic_group import GroupMetadataValue
from klamm.wire.messages.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)

KINDS = {
    2: "classic group",
    3: "epoch",
    4: "partition metadata",
    5: "subscription",
    6: "target epoch",
    7: "target",
    8: "current",
    16: "expression",
}
HEARTBEAT_INTERVAL_MS = 5_000
REBALANCE_TIMEOUT_MS = 60_000


class Names:
    """
    Args:
        topic_name: the name of a topic that exists or existed.
        hash_name: the topics that have this hash.
        now_ms: the time that records should have.
    """

    def __init__(
        self,
        topic_name: Callable[[UUID], str],
        hash_name: Callable[[int], str],
        now_ms: Callable[[], int],
    ) -> None:
        self.topic_name = topic_name
        self.hash_name = hash_name
        self.now_ms = now_ms

    def time(self, timestamp: int) -> str:
        return "" if timestamp == self.now_ms() else f" at={timestamp}"

    def partitions(self, topics: Iterable[Any]) -> str:
        """Topics with partitions, and perhaps the epochs at which they were assigned."""
        found = {}
        for topic in topics:
            text = f"{self.topic_name(topic.topic_id)}:{ranges(topic.partitions)}"
            epochs = getattr(topic, "assignment_epochs", None)
            if epochs is not None:
                by_epoch: dict[int, list[int]] = {}
                for partition, epoch in zip(topic.partitions, epochs, strict=True):
                    by_epoch.setdefault(epoch, []).append(partition)
                text = ",".join(f"{ranges(by_epoch[epoch])}@{epoch}" for epoch in sorted(by_epoch))
                text = f"{self.topic_name(topic.topic_id)}:{text}"
            found[self.topic_name(topic.topic_id)] = text
        return ";".join(found[name] for name in sorted(found)) or "-"


def ranges(numbers: Iterable[int]) -> str:
    """0-2,4 for 0, 1, 2 and 4."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def optional(**fields: Any) -> str:
    """The fields that say something."""
    return "".join(f" {name}={value}" for name, value in fields.items() if value not in (None, ""))


def printed_record(record: CoordinatorRecord, names: Names) -> str:
    key: Any = record.key
    kind = KINDS[type(key).API_KEY]
    subject = getattr(key, "member_id", getattr(key, "regular_expression", ""))
    head = f"{kind} {subject}".rstrip()
    if record.value is None:
        return f"- {head}"
    return f"+ {head}{_printed_value(record.value, names)}"


def _printed_value(value: Any, names: Names) -> str:
    match value:
        case ConsumerGroupMetadataValue():
            return f" {value.epoch} hash={names.hash_name(value.metadata_hash)}"
        case ConsumerGroupTargetAssignmentMetadataValue():
            return f" {value.assignment_epoch}{names.time(value.assignment_timestamp)}"
        case ConsumerGroupTargetAssignmentMemberValue():
            return f" {names.partitions(value.topic_partitions)}"
        case ConsumerGroupMemberMetadataValue():
            return _printed_subscription(value)
        case ConsumerGroupRegularExpressionValue():
            return f" {','.join(value.topics) or '-'}{names.time(value.timestamp)}"
        case ConsumerGroupCurrentMemberAssignmentValue():
            revoking = names.partitions(value.partitions_pending_revocation)
            return (
                f" epoch={value.member_epoch} previous={value.previous_member_epoch}"
                f" {MemberState(value.state).name} {names.partitions(value.assigned_partitions)}"
                + optional(revoking="" if revoking == "-" else revoking)
            )
        case GroupMetadataValue():
            return _printed_classic_group(value, names)
    raise AssertionError(value)


def _printed_subscription(value: ConsumerGroupMemberMetadataValue) -> str:
    classic = value.classic_member_metadata
    timeout_ms = value.rebalance_timeout_ms
    text = " " + (",".join(value.subscribed_topic_names) or "-")
    text += optional(
        regex=value.subscribed_topic_regex,
        instance=value.instance_id,
        rack=value.rack_id,
        assignor=value.server_assignor,
        timeout="" if timeout_ms == REBALANCE_TIMEOUT_MS else timeout_ms,
    )
    if classic is not None:
        protocols = ",".join(protocol.name for protocol in classic.supported_protocols)
        text += f" classic={protocols} session={classic.session_timeout_ms}"
    return f"{text} {value.client_id}@{value.client_host}"


def _printed_classic_group(value: GroupMetadataValue, names: Names) -> str:
    members = " ".join(
        f"{member.member_id}"
        + (f"/{member.group_instance_id}" if member.group_instance_id else "")
        + f":{_topics(member.subscription)}"
        + f":{assignment_bytes(member.assignment)}"
        for member in value.members
    )
    time = names.time(value.current_state_timestamp)
    return (
        f" generation={value.generation} protocol={value.protocol} leader={value.leader}{time}"
        f" {members}"
    ).rstrip()


def _topics(subscription: bytes) -> str:
    try:
        return ",".join(read_subscription(subscription).topics)
    except WireError:
        return repr(subscription)


def assignment_bytes(assignment: bytes) -> str:
    version = int.from_bytes(assignment[:2], "big")
    topics = {
        topic.topic: ranges(topic.partitions)
        for topic in read_assignment(assignment).assigned_partitions
    }
    text = ";".join(f"{name}:{topics[name]}" for name in sorted(topics)) or "-"
    return f"{text}(v{version})" if assignment else "none"


def printed_response(member: str, response: Any, names: Names) -> str:
    """A response of one of the protocols, or of ConsumerGroupDescribe."""
    text = f"< {member}"
    code = ErrorCode(response.error_code)
    if code is not ErrorCode.NONE:
        text += f" {code.name}"
    fields: Mapping[str, Any] = {
        field.name: getattr(response, field.name) for field in response.FIELDS
    }
    for name, value in fields.items():
        match name, value:
            case "error_code", _:
                continue
            case "error_message", str():
                text += f" {value!r}"
            case "member_id", _ if value in (member, None, ""):
                continue
            case "heartbeat_interval_ms", _ if value in (0, HEARTBEAT_INTERVAL_MS):
                continue
            case "assignment", bytes():
                text += f" assignment={assignment_bytes(value)}" if value else ""
            case "assignment", None:
                continue
            case "assignment", _:
                text += f" assignment={names.partitions(value.topic_partitions)}"
            case "members", list():
                codes = [
                    f"{each.member_id}/{each.group_instance_id}:{ErrorCode(each.error_code).name}"
                    for each in value
                    if hasattr(each, "error_code")
                ]
                text += f" members={','.join(codes)}" if codes else ""
            case _ if value not in (0, None, "", False):
                text += f" {name.removesuffix('_id').removeprefix('member_')}={value}"
    return text

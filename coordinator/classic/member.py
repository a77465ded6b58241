"""A member of a classic group: a value, replaced as a whole when the member joins again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from klamm.coordinator.ports import Client
from klamm.wire.messages.describe_groups import DescribedGroupMember
from klamm.wire.messages.join_group import JoinGroupRequest
from klamm.wire.messages.stored.classic_group import GroupMetadataValue, MemberMetadata

# Stands in records whose version, or whose client, knew no rebalance timeout: the session timeout
# holds instead.
NO_REBALANCE_TIMEOUT = -1


class SupportedProtocol(NamedTuple):
    """An assignor that a member knows, and what it wants to tell the leader under this name."""

    name: str
    metadata: bytes


def names_of(names: Sequence[str]) -> frozenset[str]:
    """The protocols that somebody can be assigned with. One that is named twice never becomes the
    group's, as in Kafka, unless there is no other: then Kafka would not answer any more."""
    counts = Counter(names)
    return frozenset(name for name in names if counts[name] == 1) or frozenset(names)


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What a member said when it joined, and what the leader assigned to it.

    Args:
        group_instance_id: set for a static member, which keeps its place while it is away.
        protocols: in the order of the member's preference. A member that comes from the log has
            one, the protocol of its generation.
        assignment: opaque; empty until the leader has given one in this generation.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[SupportedProtocol, ...]
    assignment: bytes = b""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def protocol_names(self) -> frozenset[str]:
        return names_of([protocol.name for protocol in self.protocols])

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said under this protocol, which it must support."""
        return next(known.metadata for known in self.protocols if known.name == protocol)

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate that the member prefers; it must support one of them."""
        return next(known.name for known in self.protocols if known.name in candidates)

    @classmethod
    def joining(cls, request: JoinGroupRequest, client: Client, member_id: str) -> ClassicMember:
        """The member that a JoinGroup request makes."""
        return cls(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.host,
            rebalance_timeout_ms=_rebalance_timeout_ms(request, client),
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=_supported_protocols(request),
        )

    def joining_again(
        self, request: JoinGroupRequest, client: Client, member_id: str | None = None
    ) -> ClassicMember:
        """This member after another JoinGroup request.

        Args:
            member_id: the new id of a static member that came back without one.
        """
        return replace(
            self,
            member_id=self.member_id if member_id is None else member_id,
            rebalance_timeout_ms=_rebalance_timeout_ms(request, client),
            session_timeout_ms=request.session_timeout_ms,
            protocols=_supported_protocols(request),
        )

    def stored(self, protocol: str | None) -> MemberMetadata:
        """The member as the log has it: with the metadata of the group's protocol only."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=self.assignment,
        )

    @classmethod
    def from_stored(
        cls, stored: MemberMetadata, group: GroupMetadataValue, known: ClassicMember | None
    ) -> ClassicMember:
        """The member that a record speaks of; the other protocols that it is known to support,
        if it is known, are not in the record and stay."""
        assert group.protocol is not None, "a record with members has a protocol"
        chosen = SupportedProtocol(group.protocol, stored.subscription)
        protocols = known.protocols if known and chosen in known.protocols else (chosen,)
        return cls(
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=(
                stored.session_timeout
                if stored.rebalance_timeout == NO_REBALANCE_TIMEOUT
                else max(stored.rebalance_timeout, 0)
            ),
            session_timeout_ms=stored.session_timeout,
            protocol_type=group.protocol_type,
            protocols=protocols,
            assignment=stored.assignment,
        )

    def described(self, protocol: str | None) -> DescribedGroupMember:
        """The member as DescribeGroups shows it; without a protocol, without metadata."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )


def _supported_protocols(request: JoinGroupRequest) -> tuple[SupportedProtocol, ...]:
    return tuple(SupportedProtocol(known.name, known.metadata) for known in request.protocols)


def _rebalance_timeout_ms(request: JoinGroupRequest, client: Client) -> int:
    """Version 0 had one timeout for both. A negative one is 0 as in Kafka, and stored as 0, since
    -1 in a record says something else."""
    if client.api_version == 0:
        return request.session_timeout_ms
    return max(request.rebalance_timeout_ms, 0)

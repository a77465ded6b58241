"""Who is in a classic group, who leads it, and which protocols they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.java_strings import hash_map_slot
from klamm.wire.errors import ErrorCode


@dataclass(slots=True)
class Membership:
    """The members of a group.

    Args:
        members: by member id, in the order in which they came.
        static_members: the member id that owns each group instance id.
        leader: the member that assigns; None without members.
    """

    group_id: str
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    leader: str | None = None
    # How many members know each protocol.
    _support: Counter[str] = field(default_factory=Counter)

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """
        Raises:
            CoordinatorError: FENCED_INSTANCE_ID if another member has this instance id by now,
                UNKNOWN_MEMBER_ID if there is no such member.
        """
        if group_instance_id is not None:
            owner = self.static_members.get(group_instance_id)
            if owner is not None and owner != member_id:
                raise CoordinatorError(ErrorCode.FENCED_INSTANCE_ID)
            if owner is None:
                raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_id not in self.members:
            raise CoordinatorError(ErrorCode.UNKNOWN_MEMBER_ID)

    def put_member(self, member: ClassicMember) -> None:
        """Add a member, or replace the one with the same id; the first one leads."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._support.subtract(before.protocol_names)
        self.members[member.member_id] = member
        self._support.update(member.protocol_names)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def drop_member(self, member_id: str) -> None:
        """Remove a member; if it led, the eldest of the others does."""
        member = self.members.pop(member_id)
        self._support.subtract(member.protocol_names)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def set_members(self, members: Iterable[ClassicMember], leader: str | None) -> None:
        """Replace all members at once."""
        self.members.clear()
        self.static_members.clear()
        self._support.clear()
        self.leader = leader
        for member in members:
            self.put_member(member)

    def has_common_protocol(self, protocols: Collection[str]) -> bool:
        """Whether one of these protocols is known to every member."""
        return any(self._support[name] == len(self.members) for name in protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)


def select_protocol(members: Collection[ClassicMember]) -> str:
    """The protocol that most of the members prefer among those that all of them know.

    Of several with equally many votes, Kafka takes the one that a Java HashMap has first.
    """
    candidates = frozenset.intersection(*(member.protocol_names for member in members))
    votes = Counter(member.vote(candidates) for member in members)
    most = max(votes.values())
    return min(
        (name for name, count in votes.items() if count == most),
        key=lambda name: hash_map_slot(name, len(votes)),
    )

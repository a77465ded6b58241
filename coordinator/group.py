"""What every kind of group answers to the parts that serve all kinds: offsets, lists, deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeAlias
from uuid import UUID

from klamm.coordinator.ports import (
    Background,
    CoordinatorRecord,
    InlineBackground,
    Journal,
    Timers,
    Topics,
)
from klamm.coordinator.settings import GroupSettings

# Whether an offset of one partition may be committed: topic name, topic id and partition number
# go in; CoordinatorError with the code of the refusal comes out, or nothing.
PartitionCheck: TypeAlias = Callable[[str, UUID, int], None]


class Group(Protocol):
    """A classic group or a consumer group.

    The checks return nothing, or raise CoordinatorError with the code of the refusal.
    """

    # As ListGroups shows it: "classic" or "consumer".
    TYPE: ClassVar[str]
    group_id: str

    @property
    def state_name(self) -> str:
        """The state as ListGroups and DescribeGroups show it, "Stable" for example."""

    @property
    def protocol_type(self) -> str:
        """ "consumer" for consumers, "" for a classic group that never had members."""

    @property
    def is_empty(self) -> bool:
        """Nobody is a member, nor about to become one."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads this topic, so that its offsets may not expire or be deleted."""

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        """Check who commits. What is returned must then hold for every partition of the request:
        since 4.3 a member may be behind with its epoch, for partitions that it had at that epoch.
        """

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_deletion(self) -> None: ...

    def offsets_expire_after_ms(self, retention_ms: int) -> Callable[[int], int] | None:
        """How the time at which an offset expires follows from its commit timestamp; None while
        offsets of this group do not expire at all (topics with a subscription never do)."""

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        """The records that remove the group from the log, offsets not included."""


@dataclass(slots=True)
class Shard:
    """One partition of `__consumer_offsets`: its groups, and what they share.

    Args:
        groups: by group id; only `replay` and the protocols change it.
        new_uuid: random; member ids are made with it.
        now_ms: wall time, for what is stored. Never used for deadlines.
        background: for work that could hold up the event loop.
        group_configs: the configs of a group (ConfigResource GROUP) that are set, by Kafka's names:
            `consumer.session.timeout.ms` and so on.
    """

    groups: dict[str, Group]
    journal: Journal
    timers: Timers
    topics: Topics
    settings: GroupSettings
    new_uuid: Callable[[], UUID]
    now_ms: Callable[[], int]
    background: Background = field(default_factory=InlineBackground)
    group_configs: Callable[[str], Mapping[str, int]] = lambda group_id: {}

"""The server-side assignors, `uniform` and `range` (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from klamm.coordinator.assignor.range_assignor import RangeAssignor
from klamm.coordinator.assignor.spec import Assignment, Assignor, MemberSpec
from klamm.coordinator.assignor.uniform_assignor import UniformAssignor

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "MemberSpec"]

# In the order of Kafka's default of `group.consumer.assignors`: the first is the default assignor.
ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}
)

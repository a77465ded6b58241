"""What recovery hands to a log."""

from dataclasses import dataclass

from klamm.log.leader_epochs import LeaderEpochCache
from klamm.log.local_log import LocalLog
from klamm.log.producer_state import ProducerState


@dataclass(slots=True)
class LoadedLog:
    """The state of a log as recovery found or repaired it."""

    local: LocalLog
    producers: ProducerState
    leader_epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    recovery_point: int

"""What recovery leaves is right in the eyes of the checker, which shares no code with it (I16).

The crashes are those of the other crash tests: after every file operation of appends, rolls,
checkpoints, shutdowns, truncation, compaction, retention and deletion, with unsynced bytes and
names lost, kept or torn.
"""

from collections.abc import Callable

import pytest

from klamm.log.check.text_files import meta_properties
from klamm.log.config import LogConfig
from klamm.log.layout import STRAY_SUFFIX
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.partition_log import PartitionLog
from klamm.log.tests import test_crash_compaction as compaction
from klamm.log.tests import test_crash_points as points
from klamm.log.tests import test_crash_retention as retention
from klamm.log.tests.checking import KnownPartitions, check, faults
from klamm.log.tests.crashes import crashed_disks, found_after
from klamm.log.tests.support import ROOT, open_one

META_PROPERTIES = f"{ROOT}/meta.properties"


def judge(fs: MemoryFileSystem, config: LogConfig) -> None:
    """Check a directory as the crash left it, after its recovery, and after a clean stop."""
    # Before it has a name, there is nothing in the directory.
    if fs.exists(META_PROPERTIES):
        identity = meta_properties(fs.files()[META_PROPERTIES])
        # With a second replica the high watermark, which nobody may have raised, may be low.
        replicated = KnownPartitions(
            identity.directory_id, compacts=config.compacts, replicas=(1, 2)
        )
        assert faults(check(fs, replicated)) == []
    manager, log = open_one(fs, config)
    known = KnownPartitions(manager.directory_id, compacts=config.compacts)
    log.advance_high_watermark(log.log_end_offset)
    log.flush()
    manager.write_checkpoints()
    # As the next kill would leave it: what recovery makes anew is not looked at.
    assert faults(check(fs, known)) == []
    manager.close()
    # Recovery sets a log aside that ends below its start, and nobody removes it.
    assert [found for found in check(fs, known) if not found.path.endswith(STRAY_SUFFIX)] == []


@pytest.mark.parametrize("scenario", points.SCENARIOS)
def test_appends_and_checkpoints(scenario: Callable[[points.Run], None]) -> None:
    for run in points.crashed_runs(scenario):
        for surviving_bytes, surviving_names in points.CRASHES:
            judge(run.fs.after_crash(surviving_bytes, surviving_names), points.CONFIG)


@pytest.mark.parametrize("act", [compaction.once, compaction.twice_in_rounds])
def test_compaction(act: Callable[[LogManager, PartitionLog], None]) -> None:
    fs, _ = compaction.prepared()
    for number, stopped in enumerate(crashed_disks(fs, compaction.CONFIG, act)):
        # Each stop is looked at in one of the ways in which it may end.
        judge(list(found_after(stopped))[number % 5], compaction.CONFIG)


@pytest.mark.parametrize("scenario", retention.SCENARIOS)
def test_retention_and_deletion(
    scenario: Callable[[LogManager, PartitionLog, retention.Watched], None],
) -> None:
    def act(manager: LogManager, log: PartitionLog) -> None:
        scenario(manager, log, retention.Watched())

    for stopped in crashed_disks(retention.prepare(), retention.CONFIG, act):
        for found in found_after(stopped):
            judge(found, retention.CONFIG)

"""A log obeys another configuration from its next operation on."""

from dataclasses import replace

import pytest

from klamm.log.config import LogConfig
from klamm.log.errors import LogError
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.retention import Retention
from klamm.log.tests.support import NOW_MS, append, batch, open_one
from klamm.log.work import run_inline
from klamm.wire.errors import ErrorCode

SIZE = len(batch(b"0000"))
CONFIG = LogConfig(segment_bytes=10 * SIZE)


def write(count: int, *configs: LogConfig, step_ms: int = 0) -> list[int]:
    """Append so many batches under each configuration; return where segments begin."""
    _, log = open_one(MemoryFileSystem(), configs[0])
    for config in configs:
        log.update_config(config)
        for _ in range(count):
            append(log, batch(b"0000", timestamp=NOW_MS + step_ms * log.log_end_offset))
    return log.segments.base_offsets


def test_segment_bytes() -> None:
    assert write(4, CONFIG, replace(CONFIG, segment_bytes=2 * SIZE)) == [0, 4, 6]
    assert write(4, replace(CONFIG, segment_bytes=2 * SIZE), CONFIG) == [0, 2]


def test_segment_ms() -> None:
    assert write(4, CONFIG, replace(CONFIG, segment_ms=1999), step_ms=1000) == [0, 4, 6]


def test_max_compaction_lag_ms_of_a_compacted_log() -> None:
    lag = replace(CONFIG, max_compaction_lag_ms=1999)
    assert write(4, CONFIG, lag, step_ms=1000) == [0]
    lag = replace(lag, cleanup_policy=frozenset({"compact"}))
    assert write(4, CONFIG, lag, step_ms=1000) == [0, 4, 6]


def test_segment_index_bytes() -> None:
    dense = replace(CONFIG, index_interval_bytes=1, segment_bytes=1000 * SIZE)
    # Five batches have four index entries of eight bytes.
    assert write(4, dense, replace(dense, segment_index_bytes=36)) == [0, 5]


def test_index_interval_bytes() -> None:
    _, log = open_one(MemoryFileSystem(), CONFIG)
    for _ in range(3):
        append(log, batch())
    assert len(log.active_segment.offset_index) == 0
    log.update_config(replace(CONFIG, index_interval_bytes=1))
    for _ in range(3):
        append(log, batch())
    assert len(log.active_segment.offset_index) == 3


def test_retention() -> None:
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, segment_bytes=SIZE))
    for _ in range(6):
        append(log, batch(b"0000"))
    log.flush()
    log.advance_high_watermark(6)
    retention = Retention(manager)

    def run(config: LogConfig) -> int:
        log.update_config(config)
        return run_inline(retention.delete_old_segments(log, NOW_MS + 5000)).segments

    assert run(CONFIG) == 0
    assert run(replace(CONFIG, retention_bytes=4 * SIZE)) == 2
    assert run(replace(CONFIG, retention_ms=1, cleanup_policy=frozenset({"compact"}))) == 0
    assert run(replace(CONFIG, retention_ms=1)) == 4


def test_max_message_bytes_and_the_cleanup_policy() -> None:
    _, log = open_one(MemoryFileSystem(), CONFIG)
    append(log, batch(key=None))
    log.update_config(replace(CONFIG, cleanup_policy=frozenset({"compact"})))
    with pytest.raises(LogError) as refusal:
        append(log, batch(key=None))
    assert refusal.value.code == ErrorCode.INVALID_RECORD
    log.update_config(replace(CONFIG, max_message_bytes=SIZE - 1))
    with pytest.raises(LogError) as refusal:
        append(log, batch(b"0000"))
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE
    log.update_config(CONFIG)
    append(log, batch(b"0000"))


def test_file_delete_delay_ms() -> None:
    manager, log = open_one(MemoryFileSystem(), replace(CONFIG, segment_bytes=SIZE))
    for _ in range(4):
        append(log, batch(b"0000"))
    log.flush()
    log.advance_high_watermark(4)
    deletions = manager.environment.deletions
    for keep, delay_ms in ((3, 1000), (2, 0)):
        log.update_config(
            replace(CONFIG, retention_bytes=keep * SIZE, file_delete_delay_ms=delay_ms)
        )
        run_inline(Retention(manager).delete_old_segments(log, NOW_MS))
    assert len(deletions) == 6
    assert deletions.due(0) is not None
    assert len(deletions) == 3
    assert deletions.due(999) is None
    assert deletions.due(1000) is not None

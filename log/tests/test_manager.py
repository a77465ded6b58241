"""A data directory: whose it is, how it was left, what is made and removed in it."""

import threading
from pathlib import Path

import pytest

from klamm.log.checkpoint import read_offsets
from klamm.log.config import LogConfig
from klamm.log.errors import (
    CorruptFileError,
    CorruptLogError,
    DirectoryLockedError,
    InconsistentDirectoryError,
    LogError,
)
from klamm.log.fs import OsFileSystem
from klamm.log.layout import LOG_START_CHECKPOINT
from klamm.log.manager import LogManager
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.meta_properties import MetaProperties
from klamm.log.tests.support import (
    DIRECTORY,
    NOW_MS,
    OTHER_TOPIC_ID,
    ROOT,
    TOPIC,
    TOPIC_ID,
    append,
    batch,
    open_manager,
    open_one,
    open_partition,
    read_all,
    values_of,
)

RECOVERY_POINTS = f"{ROOT}/recovery-point-offset-checkpoint"
HIGH_WATERMARKS = f"{ROOT}/replication-offset-checkpoint"
LOG_STARTS = f"{ROOT}/log-start-offset-checkpoint"
KEY = (TOPIC, 0)


# --- possession ----------------------------------------------------------------------------------


def test_a_new_directory_gets_its_ids_once() -> None:
    fs = MemoryFileSystem()
    manager = LogManager.open(fs, "/a/b/data", node_id=4)
    assert manager.root == "/a/b/data"
    assert len(manager.cluster_id) == 22
    assert not manager.was_clean
    ids = (manager.cluster_id, manager.directory_id)
    manager.close()
    again = LogManager.open(fs, "/a/b/data", node_id=4)
    assert (again.cluster_id, again.directory_id) == ids
    # They are on disk before anything else is.
    assert "/a/b/data/meta.properties" in fs.after_crash().files()


def test_the_cluster_id_can_be_given() -> None:
    fs = MemoryFileSystem()
    wanted = "a2xhbW0tdHdpbi1rYWZrYQ"
    manager = LogManager.open(fs, ROOT, node_id=1, cluster_id=wanted)
    assert manager.cluster_id == wanted
    manager.close()
    with pytest.raises(InconsistentDirectoryError, match="cluster"):
        LogManager.open(fs, ROOT, node_id=1, cluster_id="b" * 22)
    # A refusal lets go of the directory, and keeps the mark of the clean shutdown.
    assert open_manager(fs).was_clean


def test_a_directory_of_another_node_is_refused() -> None:
    fs = MemoryFileSystem()
    open_manager(fs).close()
    before = fs.files()
    with pytest.raises(InconsistentDirectoryError, match="node 1, this is node 2"):
        LogManager.open(fs, ROOT, node_id=2)
    assert fs.files() == before


def test_a_directory_that_is_not_admitted_is_left_as_it_was() -> None:
    """Also what was being deleted, and the mark of the clean shutdown."""
    fs = MemoryFileSystem()
    manager, _ = open_one(fs)
    manager.delete_partition(TOPIC, 0)
    manager.close()
    before = fs.files()
    seen: list[MetaProperties] = []

    def admit(properties: MetaProperties) -> None:
        seen.append(properties)
        raise InconsistentDirectoryError("not ours")

    with pytest.raises(InconsistentDirectoryError, match="not ours"):
        LogManager.open(fs, ROOT, node_id=1, admit=admit)
    assert fs.files() == before
    assert seen == [MetaProperties(manager.cluster_id, 1, manager.directory_id)]
    assert open_manager(fs).was_clean


def test_a_directory_in_use_is_refused_with_advice() -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    with pytest.raises(DirectoryLockedError, match="choose another directory"):
        open_manager(fs)
    manager.close()
    open_manager(fs).abandon()
    open_manager(fs)


def test_a_directory_in_use_is_refused_on_disk(tmp_path: Path) -> None:
    manager = open_manager(OsFileSystem(), str(tmp_path / "data"))
    with pytest.raises(DirectoryLockedError):
        open_manager(OsFileSystem(), str(tmp_path / "data"))
    manager.close()
    open_manager(OsFileSystem(), str(tmp_path / "data")).close()


def test_an_unreadable_checkpoint_is_refused_and_nothing_is_touched() -> None:
    for path in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS):
        fs = MemoryFileSystem()
        manager, log = open_one(fs)
        append(log, batch())
        manager.close()
        fs.overwrite(path, b"0\n7\n")
        before = fs.files()
        with pytest.raises(CorruptFileError, match="checkpoint"):
            open_manager(fs)
        assert fs.files() == before


# --- clean and unclean ---------------------------------------------------------------------------


def test_the_marker_is_taken_away_for_good_when_the_directory_is_opened() -> None:
    fs = MemoryFileSystem()
    open_one(fs)[0].close()
    assert fs.files()[f"{ROOT}/.kafka_cleanshutdown"] == b'{"version":0,"brokerEpoch":-1}'
    assert open_manager(fs).was_clean
    assert not open_manager(fs.after_crash()).was_clean


def test_a_clean_restart_reads_no_batch_but_the_last() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs, LogConfig(index_interval_bytes=1))
    for sequence in range(200):
        append(log, batch(producer_id=1, producer_epoch=0, sequence=sequence))
    manager.close()
    reads: list[str] = []
    fs.refuse = lambda operation, path: reads.append(path) if operation == "pread" else None
    _, log = open_one(fs)
    assert log.log_end_offset == log.recovery_point == 200
    assert log.producers.entries[1].last_sequence == 199
    # The header behind the last index entry, once to compare and once for the end.
    assert len([path for path in reads if path.endswith(".log")]) <= 2


def test_abandoning_writes_nothing() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch(b"kept"))
    before = fs.files()
    manager.abandon()
    assert fs.files() == before
    manager, log = open_one(fs)
    assert not manager.was_clean
    assert values_of(log) == [b"kept"]


def test_offsets_survive_a_clean_restart() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for _ in range(9):
        append(log, batch())
    log.advance_high_watermark(8)
    log.increment_log_start_offset(3)
    manager.close()
    _, log = open_one(fs)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 8, 9)
    assert log.topic_id == TOPIC_ID


# --- partitions ----------------------------------------------------------------------------------


def test_partitions_are_found_by_name() -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    logs = [manager.open_partition("a", 1, TOPIC_ID, LogConfig(), NOW_MS)]
    logs += [manager.open_partition("a", 0, TOPIC_ID, LogConfig(), NOW_MS)]
    assert list(manager) == logs
    assert len(manager) == 2
    assert manager.get("a", 1) is logs[0]
    assert manager.get("b", 0) is None
    assert fs.list_directories(ROOT) == ["a-0", "a-1"]


def test_a_directory_of_another_topic_id_is_set_aside() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch(b"old"))
    manager.close()
    manager = open_manager(fs)
    log = open_partition(manager, topic_id=OTHER_TOPIC_ID)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_TOPIC_ID)
    append(log, batch(b"new"))
    log.flush()
    (stray,) = [name for name in fs.list_directories(ROOT) if name != "t-0"]
    assert stray.startswith("t-0.")
    assert stray.endswith("-stray")
    # Nothing that was known of the old one is taken for the new one.
    crashed = fs.after_crash()
    log = open_partition(open_manager(crashed), topic_id=OTHER_TOPIC_ID)
    assert values_of(log) == [b"new"]


def test_a_directory_without_a_topic_id_is_adopted() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch(b"x"))
    manager.close()
    fs.remove(f"{DIRECTORY}/partition.metadata")
    _, log = open_one(fs)
    assert values_of(log) == [b"x"]
    log.flush()
    assert f"{DIRECTORY}/partition.metadata" in fs.after_crash().files()


def test_a_deleted_partition_is_gone_and_can_be_made_again() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for _ in range(5):
        append(log, batch())
    log.advance_high_watermark(5)
    log.flush()
    manager.write_checkpoints()
    read = log.read(0, 1000)
    manager.delete_partition(TOPIC, 0)
    assert manager.get(TOPIC, 0) is None
    assert not fs.exists(DIRECTORY)
    with pytest.raises(LogError, match="KAFKA_STORAGE_ERROR"):
        append(log, batch())
    # Who was reading may go on.
    assert len(read.slice.read()) == 5 * len(batch())
    manager.remove_deleted()
    assert fs.list_directories(ROOT) == []
    log = open_partition(manager, topic_id=OTHER_TOPIC_ID)
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (0, 0, 0)
    log.flush()
    log = open_partition(open_manager(fs.after_crash()), topic_id=OTHER_TOPIC_ID)
    assert log.log_end_offset == 0


def test_a_sync_under_way_when_a_partition_is_deleted_does_no_harm() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch())
    request = log.pending_sync()
    manager.delete_partition(TOPIC, 0)
    manager.remove_deleted()
    new = open_partition(manager, topic_id=OTHER_TOPIC_ID)
    before = fs.files()
    request.run()
    assert fs.files() == before
    assert new.leader_epochs.entries == ()


def test_deleting_what_is_not_there_is_fine() -> None:
    manager = open_manager(MemoryFileSystem())
    manager.delete_partition("none", 3)
    manager.remove_deleted()


def test_a_deletion_cut_short_is_finished_at_the_next_start() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch())
    manager.delete_partition(TOPIC, 0)
    assert len(fs.list_directories(ROOT)) == 1
    open_manager(fs.after_kill())
    fs = fs.after_kill()
    open_manager(fs)
    assert fs.list_directories(ROOT) == []


def test_strays_are_renamed_and_kept() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch(b"x"))
    manager.open_partition("known", 0, TOPIC_ID, LogConfig(), NOW_MS)
    fs.make_directory(f"{ROOT}/not a partition")
    manager.close()
    manager = open_manager(fs)
    names = manager.set_aside_strays({("known", 0), ("unknown", 0)})
    assert len(names) == 1
    assert names[0].startswith("t-0.")
    assert names[0].endswith("-stray")
    assert set(fs.list_directories(ROOT)) == {"known-0", "not a partition", names[0]}
    assert any(path.startswith(f"{ROOT}/{names[0]}/0") for path in fs.files())
    assert manager.set_aside_strays({("known", 0)}) == []
    manager.write_checkpoints()
    assert KEY not in read_offsets(fs, RECOVERY_POINTS)


def test_names_are_cut_to_what_a_directory_may_be_called() -> None:
    fs = MemoryFileSystem()
    manager = open_manager(fs)
    topic = "x" * 249
    manager.open_partition(topic, 12, TOPIC_ID, LogConfig(), NOW_MS)
    manager.delete_partition(topic, 12)
    (name,) = fs.list_directories(ROOT)
    assert len(name) == 255
    manager.remove_deleted()
    assert fs.list_directories(ROOT) == []


def test_a_damaged_partition_does_not_stop_the_others() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch(b"x"))
    other = manager.open_partition("other", 0, TOPIC_ID, LogConfig(), NOW_MS)
    append(other, batch(b"y"))
    for each in (log, other):
        each.flush()
    manager.write_checkpoints()
    fs = fs.after_crash()
    path = f"{DIRECTORY}/00000000000000000000.log"
    fs.overwrite(path, bytes(20) + fs.files()[path][20:])
    manager = open_manager(fs)
    with pytest.raises(CorruptLogError):
        open_partition(manager)
    other = manager.open_partition("other", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert values_of(other) == [b"y"]
    manager.close()
    # What is known of the damaged one is kept, and it will be looked at again.
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 1, ("other", 0): 1}
    manager = open_manager(fs)
    assert not manager.was_clean
    with pytest.raises(CorruptLogError):
        open_partition(manager)


# --- checkpoints ---------------------------------------------------------------------------------


def test_checkpoints_say_where_the_logs_were() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for _ in range(5):
        append(log, batch())
    log.advance_high_watermark(4)
    write = manager.checkpoint_writer()
    log.flush()
    log.increment_log_start_offset(2)
    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 0}
    assert read_offsets(fs, HIGH_WATERMARKS) == {KEY: 4}
    assert read_offsets(fs, LOG_STARTS) == {}
    manager.checkpoint_writer((LOG_START_CHECKPOINT,))()
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 0}
    assert read_offsets(fs, LOG_STARTS) == {KEY: 2}
    assert read_offsets(fs.after_crash(), LOG_STARTS) == {KEY: 2}
    manager.write_checkpoints()
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 5}
    assert read_offsets(fs, LOG_STARTS) == {KEY: 2}


def test_a_slow_writer_never_replaces_a_newer_checkpoint() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    slow = manager.checkpoint_writer()
    append(log, batch())
    log.flush()
    manager.checkpoint_writer()()
    slow()
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 1}


def test_a_slow_writer_never_brings_a_deleted_partition_back() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch())
    log.flush()
    slow = manager.checkpoint_writer()
    manager.delete_partition(TOPIC, 0)
    log = open_partition(manager, topic_id=OTHER_TOPIC_ID)
    slow()
    log.flush()
    crashed = fs.after_crash()
    assert open_partition(open_manager(crashed), topic_id=OTHER_TOPIC_ID).log_end_offset == 0


def test_partitions_that_are_not_opened_keep_their_checkpoints() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    append(log, batch())
    manager.close()
    manager = open_manager(fs)
    manager.write_checkpoints()
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 1}


def test_truncation_lowers_the_recovery_point_on_disk_first() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for index in range(5):
        append(log, batch(b"%d" % index))
    log.flush()
    manager.write_checkpoints()
    start = len(fs.history)
    log.truncate_to(2, NOW_MS)
    history = fs.history[start:]
    checkpointed = history.index(("sync_directory", ROOT))
    truncated = history.index(("truncate", f"{DIRECTORY}/00000000000000000000.log"))
    assert checkpointed < truncated
    assert read_offsets(fs, RECOVERY_POINTS) == {KEY: 2}
    assert values_of(log) == [b"0", b"1"]


def test_a_log_start_beyond_what_survived_starts_an_empty_log() -> None:
    fs = MemoryFileSystem()
    manager, log = open_one(fs)
    for _ in range(5):
        append(log, batch())
    log.advance_high_watermark(5)
    log.increment_log_start_offset(4)
    manager.checkpoint_writer((LOG_START_CHECKPOINT,))()
    log = open_one(fs.after_crash())[1]
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert append(log, batch(b"x")) == 4
    assert [record.offset for record in read_all(log)] == [4]

"""Checkpoints, metadata and snapshots: their bytes as Kafka lays them out, and damage."""

from uuid import UUID

import pytest

from klamm.log.checkpoint import (
    ZERO_UUID,
    decode_uuid,
    encode_offsets,
    encode_partition_metadata,
    encode_uuid,
    read_offsets,
    read_partition_metadata,
)
from klamm.log.errors import CorruptFileError, InconsistentDirectoryError, StorageError
from klamm.log.leader_epochs import LeaderEpochCache
from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    random_uuid,
)
from klamm.log.producer_entry import BatchMetadata, ProducerStateEntry
from klamm.log.producer_snapshot import decode_snapshot, encode_snapshot
from klamm.wire.records.crc import crc32c

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
TOPIC_ID_TEXT = "ABEiM0RVZneImaq7zN3u_w"


def disk_with(content: bytes | None) -> MemoryFileSystem:
    fs = MemoryFileSystem()
    if content is not None:
        fs.open("/file", create=True).append([content], len(content))
    return fs


# --- offset checkpoints --------------------------------------------------------------------------

OFFSETS = {("topic", 0): 17, ("topic", 11): 0, ("my.other-topic_1", 3): 2**62}
OFFSETS_GOLDEN = b"0\n3\ntopic 0 17\ntopic 11 0\nmy.other-topic_1 3 4611686018427387904\n"


def test_offset_checkpoint_bytes() -> None:
    assert encode_offsets(OFFSETS) == OFFSETS_GOLDEN
    assert read_offsets(disk_with(OFFSETS_GOLDEN), "/file") == OFFSETS
    assert encode_offsets({}) == b"0\n0\n"


@pytest.mark.parametrize("content", [None, b"", b"0\n0\n"])
def test_an_offset_checkpoint_without_entries(content: bytes | None) -> None:
    assert read_offsets(disk_with(content), "/file") == {}


@pytest.mark.parametrize(
    "content",
    [
        b"0",
        b"0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n0\ntopic 0 17\n",
        b"0\n1\ntopic 0 17",
        b"0\n1\ntopic 0\n",
        b"0\n1\ntopic 0 17 9\n",
        b"0\n1\ntopic zero 17\n",
        b"0\n1\ntopic 0 1_7\n",
        b"0\n1\ntopic 0 \xd9\xa1\n",
        b"0\n2\ntopic 0 17\ntopic 0 18\n",
        b"\xff\xfe\n",
        b"x\n0\n",
    ],
)
def test_a_damaged_offset_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFileError, match="/file"):
        read_offsets(disk_with(content), "/file")


# --- partition.metadata --------------------------------------------------------------------------

METADATA_GOLDEN = b"version: 0\ntopic_id: " + TOPIC_ID_TEXT.encode()


def test_partition_metadata_bytes() -> None:
    assert encode_partition_metadata(TOPIC_ID) == METADATA_GOLDEN
    assert read_partition_metadata(disk_with(METADATA_GOLDEN), "/file") == TOPIC_ID
    assert read_partition_metadata(disk_with(METADATA_GOLDEN + b"\n"), "/file") == TOPIC_ID
    assert read_partition_metadata(disk_with(None), "/file") == ZERO_UUID


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"version: 1\ntopic_id: " + TOPIC_ID_TEXT.encode(),
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: " + b"!" * 22,
        b"version: 0\nname: x",
        b"\xff",
    ],
)
def test_damaged_partition_metadata_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFileError, match="/file"):
        read_partition_metadata(disk_with(content), "/file")


def test_uuids_as_kafka_prints_them() -> None:
    assert encode_uuid(TOPIC_ID) == TOPIC_ID_TEXT
    assert decode_uuid(TOPIC_ID_TEXT) == TOPIC_ID
    assert encode_uuid(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    for text in (
        "",
        TOPIC_ID_TEXT + "A",
        "ABEiM0RVZneImaq7zN3u/w",
        "ABEiM0RVZneImaq7zN3u_x",
        "é" * 22,
    ):
        with pytest.raises(ValueError, match="not 22 characters"):
            decode_uuid(text)


# --- leader-epoch-checkpoint ---------------------------------------------------------------------

EPOCHS_GOLDEN = b"0\n2\n0 0\n5 1234\n"


def test_leader_epoch_checkpoint_bytes() -> None:
    cache = LeaderEpochCache.decode(EPOCHS_GOLDEN)
    assert cache.entries == ((0, 0), (5, 1234))
    assert cache.encode() == EPOCHS_GOLDEN
    assert LeaderEpochCache().encode() == b"0\n0\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n1\n0 0",
        b"0\n1\n0 0 0\n",
        b"0\n1\n-1 0\n",
        b"0\n1\n0 x\n",
        b"0\n2\n5 1234\n0 0\n",
        b"0\n2\n5 9\n6 9\n",
        b"0\n2\n5 9\n5 10\n",
        b"\xff\n0\n",
    ],
)
def test_a_damaged_leader_epoch_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(StorageError):
        LeaderEpochCache.decode(content)


# --- meta.properties -----------------------------------------------------------------------------

PROPERTIES = MetaProperties("a2xhbW0tdHdpbi1rYWZrYQ", 1, TOPIC_ID)
PROPERTIES_OF_KAFKA = (
    b"#\n#Mon Nov 17 10:14:00 UTC 2025\ncluster.id=a2xhbW0tdHdpbi1rYWZrYQ\n"
    b"directory.id=" + TOPIC_ID_TEXT.encode() + b"\nnode.id=1\nversion=1\n"
)


def test_meta_properties() -> None:
    assert decode_meta_properties(PROPERTIES_OF_KAFKA, "f") == PROPERTIES
    assert decode_meta_properties(encode_meta_properties(PROPERTIES), "f") == PROPERTIES
    assert encode_meta_properties(PROPERTIES).splitlines() == PROPERTIES_OF_KAFKA.splitlines()[2:]


@pytest.mark.parametrize("version", [b"0", b"2", b""])
def test_meta_properties_of_another_version_are_refused(version: bytes) -> None:
    content = PROPERTIES_OF_KAFKA.replace(b"version=1", b"version=" + version)
    with pytest.raises(InconsistentDirectoryError, match="version"):
        decode_meta_properties(content, "f")


@pytest.mark.parametrize(
    "content",
    [
        PROPERTIES_OF_KAFKA.replace(b"node.id=1\n", b""),
        PROPERTIES_OF_KAFKA.replace(b"node.id=1", b"node.id=one"),
        PROPERTIES_OF_KAFKA.replace(b"directory.id=", b"directory.id=x"),
        PROPERTIES_OF_KAFKA + b"node.id=2\n",
        PROPERTIES_OF_KAFKA + b"garbage\n",
        b"\xff" + PROPERTIES_OF_KAFKA,
    ],
)
def test_damaged_meta_properties_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptFileError, match="f"):
        decode_meta_properties(content, "f")


def test_random_ids_never_look_like_an_option() -> None:
    assert not any(encode_uuid(random_uuid()).startswith("-") for _ in range(500))


# --- producer snapshots --------------------------------------------------------------------------

SNAPSHOT_BODY = bytes.fromhex(
    "00000002"
    # id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, start
    "0000000000000007" "0003" "0000002a" "0000000000000064" "00000004" "0000018bcfe56800"
    "ffffffff" "ffffffffffffffff"
    "0000000000000008" "0000" "ffffffff" "ffffffffffffffff" "00000000" "0000018bcfe56801"
    "00000009" "0000000000000060"
)  # fmt: skip
SNAPSHOT_GOLDEN = b"\x00\x01" + crc32c(SNAPSHOT_BODY).to_bytes(4, "big") + SNAPSHOT_BODY


def entries() -> list[ProducerStateEntry]:
    timestamp = 0x18BCFE56800
    return [
        ProducerStateEntry(7, 3, -1, timestamp, None, [BatchMetadata(42, 100, 4, timestamp)]),
        ProducerStateEntry(8, 0, 9, timestamp + 1, 96),
    ]


def test_snapshot_bytes() -> None:
    assert encode_snapshot(entries()) == SNAPSHOT_GOLDEN
    assert decode_snapshot(SNAPSHOT_GOLDEN) == entries()
    assert decode_snapshot(encode_snapshot([])) == []


def test_a_snapshot_keeps_all_remembered_batches() -> None:
    batches = [BatchMetadata(index, 10 + index, 0, 1000 + index) for index in range(5)]
    entry = ProducerStateEntry(7, 3, -1, 1004, None, batches)
    data = encode_snapshot([entry, *entries()[1:]])
    assert decode_snapshot(data) == [entry, *entries()[1:]]
    # Kafka takes the last entry of a producer, which is the one that it would have written.
    assert (
        data[10 + 4 * 46 : 10 + 5 * 46]
        == encode_snapshot([ProducerStateEntry(7, 3, -1, 1004, None, batches[-1:])])[10:]
    )


def test_batches_of_an_older_epoch_are_not_mixed_in() -> None:
    old = ProducerStateEntry(7, 2, -1, 5, None, [BatchMetadata(1, 1, 0, 5)])
    new = ProducerStateEntry(7, 3, -1, 6, None, [BatchMetadata(0, 2, 0, 6)])
    assert decode_snapshot(encode_snapshot([old, new])) == [new]


@pytest.mark.parametrize("position", range(len(SNAPSHOT_GOLDEN)))
def test_every_flipped_bit_of_a_snapshot_is_noticed(position: int) -> None:
    for bit in range(8):
        damaged = bytearray(SNAPSHOT_GOLDEN)
        damaged[position] ^= 1 << bit
        with pytest.raises(StorageError):
            decode_snapshot(bytes(damaged))


def test_a_snapshot_cut_short_or_with_a_wrong_count_is_noticed() -> None:
    for size in range(len(SNAPSHOT_GOLDEN)):
        with pytest.raises(StorageError):
            decode_snapshot(SNAPSHOT_GOLDEN[:size])
    body = b"\x00\x00\x00\x03" + SNAPSHOT_BODY[4:]
    with pytest.raises(StorageError, match="3 producers"):
        decode_snapshot(b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body)

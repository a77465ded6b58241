"""`klamm dump`: the lines of every kind of file, and of bytes that are none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from klamm.broker.__main__ import EXIT_BROKEN_PIPE, EXIT_USAGE, main
from klamm.broker.commands.dump import EXIT_BAD
from klamm.broker.commands.text import bytes_text, time_text
from klamm.broker.metadata.records import encode_metadata_record
from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.records import encode_coordinator_record
from klamm.log.producer_entry import BatchMetadata, ProducerStateEntry
from klamm.log.producer_snapshot import encode_snapshot
from klamm.log.txn_index import AbortedTransactionEntry, TransactionIndex
from klamm.wire.codec import encode
from klamm.wire.messages.stored.classic_group import OffsetCommitKey, OffsetCommitValue
from klamm.wire.messages.stored.metadata import TopicRecord
from klamm.wire.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue
from klamm.wire.records.batch import LOG_APPEND_TIME
from klamm.wire.records.codecs import Codec
from klamm.wire.records.control import build_end_transaction_marker
from klamm.wire.records.record import build_batch

TIME = 1_700_000_000_123
TIME_TEXT = "2023-11-14T22:13:20.123Z"
NAME = "00000000000000000000.log"

PLAIN = build_batch(
    [
        (b"key", b"value", (("name", b"\xff"), ("none", None)), TIME),
        (None, None, (), TIME + 1),
    ],
    partition_leader_epoch=4,
)
PACKED = build_batch(
    [(b"a\tb", b"\x00\x01", (), TIME)],
    base_offset=2,
    codec=Codec.ZSTD,
    producer_id=7,
    producer_epoch=1,
    base_sequence=9,
    transactional=True,
    timestamp_type=LOG_APPEND_TIME,
)
MARKER = build_end_transaction_marker(
    producer_id=7,
    producer_epoch=1,
    commit=False,
    coordinator_epoch=3,
    timestamp=TIME,
    base_offset=3,
)
LOG = PLAIN + PACKED + MARKER

PLAIN_LINES = [
    f"batch offsets=0..1 byte=0 size={len(PLAIN)} records=2 leader_epoch=4 codec=none"
    " max_timestamp=2023-11-14T22:13:20.124Z",
    f'  record offset=0 timestamp={TIME_TEXT} key="key" value="value"'
    ' headers=[["name", "0xff"], ["none", null]]',
    "  record offset=1 timestamp=2023-11-14T22:13:20.124Z key=null value=null",
]
PACKED_LINES = [
    f"batch offsets=2..2 byte={len(PLAIN)} size={len(PACKED)} records=1 leader_epoch=-1"
    f" codec=zstd max_timestamp={TIME_TEXT} log_append_time producer_id=7 producer_epoch=1"
    " sequence=9 transactional",
    f'  record offset=2 timestamp={TIME_TEXT} key="a\\tb" value="0x0001"',
]
MARKER_LINES = [
    f"batch offsets=3..3 byte={len(PLAIN + PACKED)} size={len(MARKER)} records=1 leader_epoch=-1"
    f" codec=none max_timestamp={TIME_TEXT} producer_id=7 producer_epoch=1 sequence=-1"
    " transactional control",
    f"  record offset=3 timestamp={TIME_TEXT} control=ABORT coordinator_epoch=3",
]

Dump = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Dump:
    """Write a file under a name, dump it, and return the exit code and the lines."""

    def run(name: str, data: bytes, *options: str) -> tuple[int, list[str]]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        code = main(["dump", str(path), *options])
        output = capsys.readouterr()
        assert output.err == ""
        return code, output.out.splitlines()

    return run


# --- logs ----------------------------------------------------------------------------------------


def test_a_log(dump: Dump) -> None:
    assert dump(f"topic-0/{NAME}", LOG) == (0, PLAIN_LINES + PACKED_LINES + MARKER_LINES)
    assert dump(f"topic-0/{NAME}.deleted", PLAIN) == (0, PLAIN_LINES)
    assert dump(f"topic-0/{NAME}", b"") == (0, [])


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--no-records"], [PLAIN_LINES[0], PACKED_LINES[0], MARKER_LINES[0]]),
        (["--from-offset", "3"], MARKER_LINES),
        (["--from-offset", "1"], [PLAIN_LINES[0], PLAIN_LINES[2], *PACKED_LINES, *MARKER_LINES]),
        (["--limit", "2"], PLAIN_LINES[:2]),
        (["--no-records", "--limit", "1", "--from-offset", "2"], [PACKED_LINES[0]]),
    ],
)
def test_a_part_of_a_log(dump: Dump, options: list[str], lines: list[str]) -> None:
    assert dump(f"topic-0/{NAME}", LOG, *options) == (0, lines)


def test_damage_is_shown_and_passed_over(dump: Dump) -> None:
    damaged = bytearray(LOG)
    damaged[len(PLAIN) + 70] ^= 1
    code, lines = dump(f"topic-0/{NAME}", bytes(damaged) + b"\x00\x01")
    assert code == EXIT_BAD
    assert lines[:3] == PLAIN_LINES
    start = f'bad byte={len(PLAIN)} size={len(PACKED)} reason="the checksum is 0x'
    assert lines[3].startswith(start)
    assert lines[3].endswith(
        ": 00 00 00 00 00 00 00 02 " + damaged[len(PLAIN) + 8 :][:24].hex(" ") + " ..."
    )
    assert lines[4:6] == MARKER_LINES
    assert lines[6:] == [
        f'bad byte={len(LOG)} size=2 reason="the file ends after 2 bytes of a batch": 00 01'
    ]


# --- the records of internal topics --------------------------------------------------------------


def stored_log(key: bytes | None, value: bytes | None) -> bytes:
    return build_batch([(key, value, (), TIME)])


def test_metadata_records(dump: Dump) -> None:
    record = TopicRecord(name="plain", topic_id=UUID(int=1))
    log = stored_log(None, encode_metadata_record(record))
    expected = 'TopicRecord={"name": "plain", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}'
    for name in (f"__cluster_metadata-0/{NAME}", "00000000000000000009-0000000001.checkpoint"):
        code, lines = dump(name, log)
        assert (code, lines[1]) == (0, f"  record offset=0 timestamp={TIME_TEXT} {expected}")


def test_group_records(dump: Dump) -> None:
    key = OffsetCommitKey(group="group", topic="topic", partition=3)
    value = OffsetCommitValue(offset=17, leader_epoch=2, metadata="", commit_timestamp=5)
    name = f"__consumer_offsets-49/{NAME}"
    key_text = 'OffsetCommitKey={"group": "group", "topic": "topic", "partition": 3}'
    for stored, expected in (
        (
            value,
            'OffsetCommitValue={"offset": 17, "leader_epoch": 2, "metadata": "",'
            ' "commit_timestamp": 5, "expire_timestamp": -1,'
            ' "topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}',
        ),
        (None, "value=null"),
    ):
        record = encode_coordinator_record(CoordinatorRecord(key, stored, 3))
        code, lines = dump(name, stored_log(*record))
        assert code == 0
        assert lines[1] == f"  record offset=0 timestamp={TIME_TEXT} {key_text} {expected}"
    code, lines = dump(name, stored_log(b"\x00\x0emore", None))
    assert code == 0
    assert lines[1].endswith(' unknown_type=14 key="0x000e6d6f7265" value=null')


def test_transaction_records(dump: Dump) -> None:
    key = b"\x00\x00" + encode(TransactionLogKey(transactional_id="mine"), 0)
    value = TransactionLogValue(
        producer_id=4,
        producer_epoch=1,
        transaction_timeout_ms=60,
        transaction_status=2,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=8,
        transaction_start_timestamp_ms=7,
    )
    name = f"__transaction_state-0/{NAME}"
    code, lines = dump(name, stored_log(key, b"\x00\x00" + encode(value, 0)))
    assert code == 0
    assert lines[1].startswith(
        f'  record offset=0 timestamp={TIME_TEXT} TransactionLogKey={{"transactional_id": "mine"}}'
        ' TransactionLogValue={"producer_id": 4, '
    )
    assert dump(name, stored_log(key, None))[1][1].endswith(' "mine"} value=null')


@pytest.mark.parametrize(
    "topic", ["__cluster_metadata", "__consumer_offsets", "__transaction_state"]
)
def test_records_that_are_not_what_the_topic_holds(dump: Dump, topic: str) -> None:
    code, lines = dump(f"{topic}-0/{NAME}", stored_log(b"\x00\x01?", b"\x09garbage"))
    assert code == EXIT_BAD
    assert lines[1].startswith('bad record offset=0 reason="')
    assert lines[1].endswith(' key="0x00013f" value="\\tgarbage"')


# --- the other files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "lines"),
    [
        (
            "00000000000000000100.index",
            bytes.fromhex("00000005 00001000 00000009 00002000") + bytes(32),
            [
                "entry byte=0 offset=105 position=4096",
                "entry byte=8 offset=109 position=8192",
                "zeros byte=16 size=32",
            ],
        ),
        (
            "00000000000000000100.timeindex",
            TIME.to_bytes(8, "big") + (7).to_bytes(4, "big"),
            [f"entry byte=0 timestamp={TIME_TEXT} offset=107"],
        ),
        (
            "00000000000000000100.snapshot",
            encode_snapshot(
                [ProducerStateEntry(7, 1, 3, TIME, 40, [BatchMetadata(9, 44, 4, TIME)])]
            ),
            [
                "producer byte=10 producer_id=7 producer_epoch=1 last_sequence=9 last_offset=44"
                f" offset_delta=4 timestamp={TIME_TEXT} coordinator_epoch=3 txn_first_offset=40"
            ],
        ),
        (
            "recovery-point-offset-checkpoint",
            b"0\n2\nmy.topic 0 17\nother 3 0\n",
            [
                "line byte=4 topic=my.topic partition=0 offset=17",
                "line byte=18 topic=other partition=3 offset=0",
            ],
        ),
        (
            "leader-epoch-checkpoint",
            b"0\n1\n3 14\n",
            ["line byte=4 leader_epoch=3 start_offset=14"],
        ),
        (
            "partition.metadata",
            b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
            ["topic_id=AAAAAAAAAAAAAAAAAAAAAQ"],
        ),
        ("meta.properties", b"#\nversion=1\nnode.id = 4\n", ["version=1", "node.id=4"]),
        (".kafka_cleanshutdown", b'{"version":0}', ['{"version":0}']),
        (".klamm-boot", b"a-boot\ntopic-0\n", ["a-boot", "topic-0"]),
    ],
)
def test_other_files(dump: Dump, name: str, data: bytes, lines: list[str]) -> None:
    assert dump(name, data) == (0, lines)


def test_a_transaction_index(dump: Dump) -> None:
    index = TransactionIndex()
    index.append(AbortedTransactionEntry(7, 10, 14, 12))
    index.append(AbortedTransactionEntry(8, 12, 20, 21))
    name = "00000000000000000000.txnindex"
    lines = [
        "aborted byte=0 version=0 producer_id=7 offsets=10..14 last_stable_offset=12",
        "aborted byte=34 version=0 producer_id=8 offsets=12..20 last_stable_offset=21",
    ]
    assert dump(name, index.encode()) == (0, lines)
    assert dump(name, index.encode(), "--from-offset", "15") == (0, lines[1:])
    cut = index.encode()[:-4]
    assert dump(name, cut) == (
        EXIT_BAD,
        [
            lines[0],
            f'bad byte=34 size=30 reason="less than an entry of 34 bytes": {cut[34:].hex(" ")}',
        ],
    )


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        (
            "recovery-point-offset-checkpoint",
            b"0\n1\ntopic 0 1x\n",
            "bad byte=4 size=11 reason=\"'1x' is not a number\": 74 6f 70 69 63 20 30 20 31 78 0a",
        ),
        ("partition.metadata", b"\xff", 'bad byte=0 size=1 reason="not text": ff'),
        (
            "00000000000000000001.snapshot",
            b"\x00\x01\x00",
            'bad byte=3 size=0 reason="3 bytes are no producer snapshot"',
        ),
    ],
)
def test_files_that_are_not_what_they_are_called(
    dump: Dump, name: str, data: bytes, line: str
) -> None:
    assert dump(name, data) == (EXIT_BAD, [line])


def test_every_flip_of_a_log_is_shown_without_a_traceback(dump: Dump) -> None:
    for position in range(len(LOG)):
        damaged = bytearray(LOG)
        damaged[position] ^= 1 << position % 8
        code, _ = dump(f"topic-0/{NAME}", bytes(damaged))
        # Offset and epoch of a batch lie outside its checksum; here they are just printed.
        starts = (0, len(PLAIN), len(PLAIN + PACKED))
        start = max(start for start in starts if start <= position)
        assert code == (0 if position - start in (*range(8), *range(12, 16)) else EXIT_BAD)


# --- the command ---------------------------------------------------------------------------------


def test_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("meta.properties", "leader-epoch-checkpoint"):
        (tmp_path / name).write_bytes(b"")
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    assert main(["dump", *paths]) == 0
    assert capsys.readouterr().out.splitlines() == [f"file {path}" for path in paths]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing.log", ": No such file or directory"),
        ("nothing.txt", ": No such file or directory"),
        ("notes.txt", ": its name is none of a data directory's files; a file is known by its own"),
        ("topic-0", " is a directory; name files in it, such as "),
    ],
)
def test_what_can_not_be_dumped(
    tmp_path: Path, name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "topic-0").mkdir()
    assert main(["dump", str(tmp_path / name)]) == EXIT_USAGE
    assert capsys.readouterr().err.startswith(f"klamm: {tmp_path / name}{says}")


def test_the_lock_has_nothing_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".lock").touch()
    assert main(["dump", str(tmp_path / ".lock")]) == 0
    assert capsys.readouterr().out == ""


def test_a_file_in_the_working_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    record = TopicRecord(name="plain", topic_id=UUID(int=1))
    (folder / NAME).write_bytes(stored_log(None, encode_metadata_record(record)))
    monkeypatch.chdir(folder)
    assert main(["dump", NAME]) == 0
    assert "TopicRecord" in capsys.readouterr().out


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(LOG * 5000)
    command = [sys.executable, "-m", "klamm.broker", "dump", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"batch offsets=0..1 ")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == EXIT_BROKEN_PIPE


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "none"),
        (-2, "1969-12-31T23:59:59.998Z"),
        (2**63 - 1, "9223372036854775807ms"),
    ],
)
def test_times(timestamp: int, text: str) -> None:
    assert time_text(timestamp) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "null"),
        (b"", '""'),
        ("Höhe".encode(), '"Höhe"'),
        (b'say "hi"\n', '"say \\"hi\\"\\n"'),
        (b"\x1b[31m", '"0x1b5b33316d"'),
        ("\u202eevil".encode(), '"0xe280ae6576696c"'),
    ],
)
def test_bytes(data: bytes | None, text: str) -> None:
    assert bytes_text(data) == text

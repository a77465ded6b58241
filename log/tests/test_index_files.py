"""The three index files: their bytes as Kafka lays them out, lookups, and damage."""

import pytest

from klamm.log.errors import CorruptFileError
from klamm.log.offset_index import OffsetIndex
from klamm.log.time_index import TimeIndex
from klamm.log.txn_index import AbortedTransactionEntry, TransactionIndex

BASE = 1_000_000_000_000


# --- offset index --------------------------------------------------------------------------------

OFFSET_GOLDEN = bytes.fromhex("00000005000010000000000900002abc7fffffff7ffffff0")
OFFSET_ENTRIES = [(BASE + 5, 0x1000), (BASE + 9, 0x2ABC), (BASE + 2**31 - 1, 0x7FFFFFF0)]


def offset_index() -> OffsetIndex:
    index = OffsetIndex(BASE)
    for offset, position in OFFSET_ENTRIES:
        index.append(offset, position)
    return index


def decode_offset_index(data: bytes) -> OffsetIndex:
    return OffsetIndex.decode(data, BASE, 2**31 - 1, "x.index")


def test_offset_index_bytes() -> None:
    assert offset_index().encode() == OFFSET_GOLDEN
    assert decode_offset_index(OFFSET_GOLDEN).entries() == OFFSET_ENTRIES
    assert offset_index().size_in_bytes == 24
    assert decode_offset_index(b"").entries() == []


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        (0, (BASE, 0)),
        (BASE, (BASE, 0)),
        (BASE + 4, (BASE, 0)),
        (BASE + 5, (BASE + 5, 0x1000)),
        (BASE + 8, (BASE + 5, 0x1000)),
        (BASE + 9, (BASE + 9, 0x2ABC)),
        (BASE + 2**31 - 1, (BASE + 2**31 - 1, 0x7FFFFFF0)),
        (BASE + 2**40, (BASE + 2**31 - 1, 0x7FFFFFF0)),
    ],
)
def test_offset_index_lookup(offset: int, found: tuple[int, int]) -> None:
    assert offset_index().lookup(offset) == found


@pytest.mark.parametrize(
    ("position", "found"),
    [(0, BASE + 5), (0x1000, BASE + 5), (0x1001, BASE + 9), (0x7FFFFFF1, None)],
)
def test_offset_index_upper_bound(position: int, found: int | None) -> None:
    assert offset_index().upper_bound_offset(position) == found


@pytest.mark.parametrize(
    ("offset", "left"),
    [(0, 0), (BASE + 5, 0), (BASE + 6, 1), (BASE + 9, 1), (BASE + 10, 2), (BASE + 2**40, 3)],
)
def test_offset_index_truncation(offset: int, left: int) -> None:
    index = offset_index()
    index.truncate_to(offset)
    assert index.entries() == OFFSET_ENTRIES[:left]


def test_offset_index_ends() -> None:
    assert offset_index().last_offset == BASE + 2**31 - 1
    assert OffsetIndex(BASE).last_offset == BASE
    assert not offset_index().is_full(32)
    assert offset_index().is_full(31)


@pytest.mark.parametrize(
    "data",
    [
        OFFSET_GOLDEN[:-1],
        OFFSET_GOLDEN[8:16] + OFFSET_GOLDEN[:8],
        OFFSET_GOLDEN[:8] * 2,
        bytes.fromhex("ffffffff00000000"),
        bytes.fromhex("00000001ffffffff"),
        bytes.fromhex("000000017fffffff"),
        # What a crash leaves of a file that was made large beforehand.
        OFFSET_GOLDEN + bytes(8),
    ],
)
def test_a_damaged_offset_index_is_noticed(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"x\.index"):
        decode_offset_index(data)


# --- time index ----------------------------------------------------------------------------------

TIME_GOLDEN = bytes.fromhex(
    "0000018bcfe56800000000000000018bcfe56801000000070000018bcfe568ff00000007"
)
T = 0x0000018BCFE56800
TIME_ENTRIES = [(T, BASE), (T + 1, BASE + 7), (T + 255, BASE + 7)]


def time_index() -> TimeIndex:
    index = TimeIndex(BASE)
    for timestamp, offset in TIME_ENTRIES:
        index.maybe_append(timestamp, offset)
    return index


def test_time_index_bytes() -> None:
    assert time_index().encode() == TIME_GOLDEN
    assert TimeIndex.decode(TIME_GOLDEN, BASE, "x").entries() == TIME_ENTRIES
    assert TimeIndex.decode_entry(TIME_GOLDEN[-12:], BASE) == TIME_ENTRIES[-1]
    assert time_index().size_in_bytes == 36


def test_time_index_takes_growing_timestamps_only() -> None:
    index = time_index()
    index.maybe_append(T + 255, BASE + 9)
    index.maybe_append(T, BASE + 9)
    assert index.entries() == TIME_ENTRIES
    assert index.last_entry == TIME_ENTRIES[-1]
    assert TimeIndex(BASE).last_entry == (-1, BASE)


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(0, BASE), (T - 1, BASE), (T, BASE), (T + 1, BASE + 7), (T + 2**40, BASE + 7)],
)
def test_time_index_lookup(timestamp: int, offset: int) -> None:
    assert time_index().lookup(timestamp) == offset


@pytest.mark.parametrize(("offset", "left"), [(BASE, 0), (BASE + 7, 1), (BASE + 8, 3)])
def test_time_index_truncation(offset: int, left: int) -> None:
    index = time_index()
    index.truncate_to(offset)
    assert index.entries() == TIME_ENTRIES[:left]


def test_time_index_keeps_a_slot_for_the_last_entry() -> None:
    assert time_index().is_full(48)
    assert not time_index().is_full(60)


@pytest.mark.parametrize(
    "data",
    [
        TIME_GOLDEN[:-1],
        TIME_GOLDEN[12:24] + TIME_GOLDEN[:12],
        TIME_GOLDEN[:12] * 2,
        bytes.fromhex("ffffffffffffffff00000000"),
        bytes.fromhex("0000000000000001ffffffff"),
        bytes.fromhex("000000000000000100000005000000000000000200000004"),
    ],
)
def test_a_damaged_time_index_is_noticed(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"x\.timeindex"):
        TimeIndex.decode(data, BASE, "x.timeindex")


# --- transaction index ---------------------------------------------------------------------------

TXN_GOLDEN = bytes.fromhex(
    "0000" "0000000000000011" "0000000000000064" "000000000000006e" "0000000000000069"
    "0000" "0000000000000022" "0000000000000069" "0000000000000078" "0000000000000079"
)  # fmt: skip
TXN_ENTRIES = [
    AbortedTransactionEntry(0x11, 100, 110, 105),
    AbortedTransactionEntry(0x22, 105, 120, 121),
]


def txn_index() -> TransactionIndex:
    index = TransactionIndex()
    for entry in TXN_ENTRIES:
        index.append(entry)
    return index


def test_transaction_index_bytes() -> None:
    assert txn_index().encode() == TXN_GOLDEN
    assert TransactionIndex.decode(TXN_GOLDEN, 100, "x").entries == TXN_ENTRIES
    assert txn_index().size_in_bytes == 68


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "found", "is_complete"),
    [
        (0, 100, [], True),
        (0, 101, [0], True),
        (0, 105, [0], True),
        (0, 106, [0, 1], True),
        (110, 200, [0, 1], False),
        (111, 200, [1], False),
        (121, 200, [], False),
    ],
)
def test_transaction_index_search(
    fetch_offset: int, upper_bound: int, found: list[int], is_complete: bool
) -> None:
    entries: list[AbortedTransactionEntry] = []
    assert txn_index().collect(fetch_offset, upper_bound, entries) == is_complete
    assert entries == [TXN_ENTRIES[index] for index in found]


@pytest.mark.parametrize(("offset", "left"), [(110, 0), (111, 1), (120, 1), (121, 2)])
def test_transaction_index_truncation(offset: int, left: int) -> None:
    index = txn_index()
    index.truncate_to(offset)
    assert index.entries == TXN_ENTRIES[:left]


@pytest.mark.parametrize(
    "data",
    [
        TXN_GOLDEN[:-1],
        b"\x00\x01" + TXN_GOLDEN[2:],
        TXN_GOLDEN[34:] + TXN_GOLDEN[:34],
        TXN_GOLDEN[:34] * 2,
        bytes.fromhex("00000000000000000011000000000000006f000000000000006e") + bytes(8),
    ],
)
def test_a_damaged_transaction_index_is_noticed(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"x\.txnindex"):
        TransactionIndex.decode(data, 100, "x.txnindex")


def test_a_transaction_index_of_another_segment_is_noticed() -> None:
    with pytest.raises(CorruptFileError):
        TransactionIndex.decode(TXN_GOLDEN, 111, "x.txnindex")

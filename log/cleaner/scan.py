"""The records of a batch, as far as compaction looks at them.

`scan_keys` is what compaction does to every record, so it is one flat loop. Varints of one and two
bytes are decoded in place, and of the value only the sign of its length is looked at.
"""

from klamm.log.cleaner.key_map import DIGEST_BYTES, Key, digest
from klamm.wire.errors import WireError
from klamm.wire.records.varint import encode_varint, read_varint, read_varlong


def scan_keys(data: bytes, count: int) -> tuple[list[Key], list[int]]:
    """Walk count records, and require that they are what data holds.

    Returns:
        The keys, as they stand in a key map, and the indexes of the records without a value.

    Raises:
        WireError: a record is cut short or not as long as it says.
    """
    keys: list[Key] = []
    add = keys.append
    tombstones: list[int] = []
    position = 0
    try:
        for index in range(count):
            byte = data[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2  # Behind the length and the attributes.
            elif (second := data[position + 1]) < 0x80:
                end = position + 2 + ((byte & 0x7F | second << 7) >> 1)
                position += 3
            else:
                length, position = read_varint(data, position)
                end = position + length
                position += 1
            # The timestamp and the offset, each relative to that of the batch.
            if data[position] < 0x80:
                position += 1
            elif data[position + 1] < 0x80:
                position += 2
            else:
                position = read_varlong(data, position)[1]
            if data[position] < 0x80:
                position += 1
            elif data[position + 1] < 0x80:
                position += 2
            else:
                position = read_varint(data, position)[1]
            byte = data[position]
            if byte < 0x80:
                # The sign of a varint is in its lowest bit.
                length = -1 if byte & 1 else byte >> 1
                position += 1
            else:
                length, position = read_varint(data, position)
            if length < 0:
                add(None)
            else:
                start = position
                position += length
                add(data[start:position] if length < DIGEST_BYTES else digest(data[start:position]))
            if data[position] & 1:
                tombstones.append(index)
            if position >= end:
                raise WireError("a record ends before its value")
            position = end
    except IndexError:
        raise WireError("the data ends inside a record") from None
    if position != len(data):
        raise WireError(f"{len(data) - position} bytes behind the last record")
    return keys, tombstones


def split_records(data: bytes, keeps: bytes | bytearray) -> list[bytes]:
    """Return the records that are to be kept, of data that scan_keys has accepted.

    Args:
        keeps: for each record not 0 when it is.
    """
    kept: list[bytes] = []
    position = 0
    for keep in keeps:
        start = position
        byte = data[position]
        if byte < 0x80:
            position += 1 + (byte >> 1)
        elif (second := data[position + 1]) < 0x80:
            position += 2 + ((byte & 0x7F | second << 7) >> 1)
        else:
            length, position = read_varint(data, position)
            position += length
        if keep:
            kept.append(data[start:position])
    return kept


def max_timestamp_delta(records: list[bytes]) -> int:
    """Return the greatest timestamp delta of some records."""
    deltas: list[int] = []
    for record in records:
        # Behind the length, which takes one byte or two, and the attributes.
        at = 2 if record[0] < 0x80 else 3 if record[1] < 0x80 else read_varint(record, 0)[1] + 1
        byte = record[at]
        if byte < 0x80:
            deltas.append((byte >> 1) ^ -(byte & 1))
        elif (second := record[at + 1]) < 0x80:
            byte = byte & 0x7F | second << 7
            deltas.append((byte >> 1) ^ -(byte & 1))
        else:
            deltas.append(read_varlong(record, at)[0])
    return max(deltas)


def with_timestamp_delta(record: bytes, change: int) -> bytes:
    """Return one record with its timestamp delta changed by that much."""
    _, position = read_varint(record, 0)
    delta, rest = read_varlong(record, position + 1)
    body = record[position : position + 1] + encode_varint(delta + change) + record[rest:]
    return encode_varint(len(body)) + body

"""Control records: the markers that end a transaction, and the types the metadata log knows.

A control batch holds one record. Its key is a version and a type, both int16; the value of a
commit or abort marker is a version (int16) and the epoch of the coordinator that decided (int32).
Markers carry the producer's id and epoch, no sequence, and take one offset.
"""

import enum
import struct
from typing import NamedTuple

from klamm.wire.errors import WireError
from klamm.wire.records.batch import NO_PARTITION_LEADER_EPOCH, NO_SEQUENCE
from klamm.wire.records.record import Buffer, Record, build_batch, iter_records

_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_CURRENT_VERSION = 0
# A marker's batch is a hundred bytes; whoever compresses one has no use for more than this.
_CONTROL_BYTES_MAX = 64 * 1024


class ControlRecordType(enum.IntEnum):
    """The type in a control record's key; types from the future read as UNKNOWN and are skipped."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """How a transaction ended, and in which epoch of its coordinator that was decided."""

    control_type: ControlRecordType
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.control_type == ControlRecordType.COMMIT


def parse_control_type(key: bytes | None) -> ControlRecordType:
    """Return the type that a control record's key names.

    Raises:
        WireError: the key is missing, too short or of a negative version.
    """
    if key is None or len(key) < _KEY.size:
        raise WireError(f"a control record's key has {_KEY.size} bytes")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise WireError(f"control record version {version}")
    try:
        return ControlRecordType(number)
    except ValueError:
        return ControlRecordType.UNKNOWN


def parse_end_transaction_marker(record: Record) -> EndTransactionMarker:
    """Return the marker that a control record holds.

    Raises:
        WireError: the record is of another type, or its value is cut short.
    """
    control_type = parse_control_type(record.key)
    if control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise WireError(f"{control_type.name} does not end a transaction")
    if record.value is None or len(record.value) < _MARKER_VALUE.size:
        raise WireError(f"an end transaction marker has {_MARKER_VALUE.size} bytes")
    version, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    if version < 0:
        raise WireError(f"end transaction marker version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


def read_end_transaction_marker(batch: Buffer) -> EndTransactionMarker | None:
    """Return the marker of a control batch, or None where compaction has emptied it.

    Raises:
        WireError: the batch or its record is damaged or of another type.
    """
    for record in iter_records(batch, decompressed_bytes_max=_CONTROL_BYTES_MAX):
        return parse_end_transaction_marker(record)
    return None


def encode_control_key(control_type: ControlRecordType) -> bytes:
    """Return the key of a control record of that type."""
    assert control_type != ControlRecordType.UNKNOWN
    return _KEY.pack(_CURRENT_VERSION, control_type)


def build_control_batch(
    control_type: ControlRecordType,
    value: bytes,
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Return a control batch that belongs to no producer, as the metadata log writes them."""
    return build_batch(
        [(encode_control_key(control_type), value, (), timestamp)],
        base_offset=base_offset,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_end_transaction_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Return the batch that commits or aborts a producer's open transaction."""
    assert producer_id >= 0
    assert producer_epoch >= 0
    control_type = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    value = _MARKER_VALUE.pack(_CURRENT_VERSION, coordinator_epoch)
    return build_batch(
        [(encode_control_key(control_type), value, (), timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        transactional=True,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )

"""The records that brokers keep their own state in, decoded by the topic that they lie in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klamm.broker.metadata.records import decode_metadata_record
from klamm.coordinator.records import UnknownRecordTypeError, decode_coordinator_record
from klamm.coordinator.transaction.records import decode_transaction_record
from klamm.wire.errors import WireError

METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

# Key and value of a record to what they stand for; WireError when they stand for nothing.
Decode = Callable[[bytes | None, bytes | None], Any]


class UnknownRecord:
    """A record of a kind that klamm does not know, and leaves alone."""

    def __init__(self, record_type: int) -> None:
        self.record_type = record_type


def decode_stored(topic: str) -> Decode | None:
    """Return what decodes the records of a topic; None for a topic of the users."""
    return _DECODERS.get(topic)


def _metadata(key: bytes | None, value: bytes | None) -> Any:
    return decode_metadata_record(value or b"")


def _group(key: bytes | None, value: bytes | None) -> Any:
    try:
        record = decode_coordinator_record(key, value)
    except UnknownRecordTypeError as unknown:
        return UnknownRecord(unknown.record_type)
    return record.key, record.value


def _transaction(key: bytes | None, value: bytes | None) -> Any:
    try:
        record = decode_transaction_record(key, value)
    except UnknownRecordTypeError as unknown:
        # There is one type, and no other kind of coordinator that could have written it.
        raise WireError(str(unknown)) from unknown
    return record.key, record.value


_DECODERS: dict[str, Decode] = {
    METADATA: _metadata,
    CONSUMER_OFFSETS: _group,
    TRANSACTION_STATE: _transaction,
}

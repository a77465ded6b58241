"""The records that brokers keep their own state in, decoded by the topic that they lie in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klamm.broker.metadata.records import decode_metadata_record
from klamm.coordinator.records import UnknownRecordTypeError, decode_coordinator_record
from klamm.wire.codec import decode
from klamm.wire.errors import WireError
from klamm.wire.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue

METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

_PREFIX_BYTES = 2

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
    if key is None or len(key) < _PREFIX_BYTES:
        raise WireError("the key has no version")
    version = int.from_bytes(key[:_PREFIX_BYTES], "big", signed=True)
    decoded_key = decode(TransactionLogKey, version, key, offset=_PREFIX_BYTES)
    if value is None:
        return decoded_key, None
    if len(value) < _PREFIX_BYTES:
        raise WireError("the value has no version")
    version = int.from_bytes(value[:_PREFIX_BYTES], "big", signed=True)
    return decoded_key, decode(TransactionLogValue, version, value, offset=_PREFIX_BYTES)


_DECODERS: dict[str, Decode] = {
    METADATA: _metadata,
    CONSUMER_OFFSETS: _group,
    TRANSACTION_STATE: _transaction,
}

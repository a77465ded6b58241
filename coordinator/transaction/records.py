"""The records of `__transaction_state` as bytes: prefixed with a version, like those of groups."""

from __future__ import annotations

from klamm.coordinator.ports import CoordinatorRecord
from klamm.coordinator.records import decode_record
from klamm.coordinator.transaction.transaction import from_value
from klamm.wire.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue

RECORD_TYPES = {TransactionLogKey.API_KEY: (TransactionLogKey, TransactionLogValue)}


def decode_transaction_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """
    Raises:
        UnknownRecordTypeError: klamm does not know the type.
        WireError: the bytes are not a record of their type.
    """
    record = decode_record(RECORD_TYPES, key, value)
    if record.value is not None:
        assert isinstance(record.key, TransactionLogKey)
        assert isinstance(record.value, TransactionLogValue)
        # A state that there is none of is found while it can still be said where it stands.
        from_value(record.key.transactional_id, record.value)
    return record

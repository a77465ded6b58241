"""What kio does not have is the same bytes in Kafka itself.

kafka_bytes.txt holds the samples of samples.py as the message classes of Apache Kafka 4.3.1 wrote
them after reading them: one line for each, with the class, the version, which sample, and the hex.
"""

from functools import cache
from pathlib import Path

import pytest

from klamm.wire import codec, construct_form
from klamm.wire.schema import UNSET, Message, Primitive, Struct
from klamm.wire.tests.catalog import MESSAGES_AND_VERSIONS
from klamm.wire.tests.kio_twin import has_twin
from klamm.wire.tests.samples import full_message, sparse_message

SAMPLES = {"full": full_message, "sparse": sparse_message}
NOT_IN_KIO = [pair for pair in MESSAGES_AND_VERSIONS if not has_twin(*pair)]


@cache
def kafka_bytes() -> dict[tuple[str, int, str], bytes]:
    lines = (Path(__file__).parent / "kafka_bytes.txt").read_text().splitlines()
    rows = [line.split(" ") for line in lines]
    return {(name, int(version), kind): bytes.fromhex(raw) for name, version, kind, raw in rows}


@pytest.mark.parametrize(
    ("cls", "version"),
    NOT_IN_KIO,
    ids=[f"{cls.__name__}-v{version}" for cls, version in NOT_IN_KIO],
)
@pytest.mark.parametrize("kind", SAMPLES)
def test_stored_records_are_the_bytes_that_kafka_writes(
    cls: type[Message], version: int, kind: str
) -> None:
    message = SAMPLES[kind](cls, version)
    encoded = kafka_bytes()[cls.__name__, version, kind]
    assert codec.encode(message, version) == encoded
    assert construct_form.encode(message, version) == encoded
    assert codec.decode(cls, version, encoded) == message


# A tagged field is not written where it has its default, so its bytes do not show what that is.
# These are the defaults in Kafka's classes that are not the type's own zero or emptiness.
TAGGED_DEFAULTS = {
    ("AbortTransactionRecord", "reason"): None,
    ("BeginTransactionRecord", "name"): None,
    ("BrokerRegistrationChangeRecord", "cordoned_log_dirs"): None,
    ("PartitionChangeRecord", "adding_replicas"): None,
    ("PartitionChangeRecord", "directories"): None,
    ("PartitionChangeRecord", "eligible_leader_replicas"): None,
    ("PartitionChangeRecord", "isr"): None,
    ("PartitionChangeRecord", "last_known_elr"): None,
    ("PartitionChangeRecord", "leader"): -2,
    ("PartitionChangeRecord", "leader_recovery_state"): -1,
    ("PartitionChangeRecord", "removing_replicas"): None,
    ("PartitionChangeRecord", "replicas"): None,
    ("PartitionRecord", "eligible_leader_replicas"): None,
    ("PartitionRecord", "last_known_elr"): None,
    ("RegisterBrokerRecord", "cordoned_log_dirs"): None,
    ("ShareSnapshotValue", "delivery_complete_count"): -1,
    ("ShareUpdateValue", "delivery_complete_count"): -1,
    ("StreamsGroupMetadataValue", "validated_topology_epoch"): -1,
    ("TransactionLogValue", "next_producer_epoch"): -1,
    ("TransactionLogValue", "next_producer_id"): -1,
    ("TransactionLogValue", "previous_producer_id"): -1,
}


def test_tagged_fields_have_the_defaults_that_kafka_gives_them() -> None:
    found = {}
    structs: list[type[Struct]] = [cls for cls, _ in NOT_IN_KIO]
    while structs:
        cls = structs.pop()
        for declared in cls.FIELDS:
            if declared.tag is not None and declared.default is not UNSET:
                found[cls.__name__, declared.name] = declared.default
            if not isinstance(declared.kind, Primitive):
                structs.append(declared.kind)
    assert found == TAGGED_DEFAULTS

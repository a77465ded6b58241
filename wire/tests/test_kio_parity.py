"""Every message that the independent codec kio has, in every version, is the same bytes there."""

from collections import Counter
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from klamm.wire import codec
from klamm.wire.schema import Message
from klamm.wire.tests.catalog import MESSAGES_AND_VERSIONS, SENT
from klamm.wire.tests.kio_twin import as_ours, has_twin, messages_for_both, twin_of
from klamm.wire.tests.values import some_examples

COVERED = [pair for pair in MESSAGES_AND_VERSIONS if has_twin(*pair)]
MISSING = [pair for pair in MESSAGES_AND_VERSIONS if not has_twin(*pair)]

# How many messages and versions kio lacks, by the module that declares them; test_kafka_bytes.py
# holds each of these against bytes that Kafka itself wrote.
MISSING_BY_MODULE = {
    "classic_group": 14,
    "consumer_group": 14,
    "metadata": 37,
    "quorum_state": 2,
    "share_group": 12,
    "share_state": 4,
    "streams_group": 12,
    "transaction_log": 3,
}


def test_what_kio_lacks_is_known_and_was_never_sent() -> None:
    by_module = Counter(cls.__module__.rpartition(".")[2] for cls, _ in MISSING)
    assert dict(by_module) == MISSING_BY_MODULE
    assert not {cls for cls, _ in MISSING} & set(SENT)
    assert len(COVERED) == 625


@pytest.mark.parametrize(
    ("cls", "version"), COVERED, ids=[f"{cls.__name__}-v{version}" for cls, version in COVERED]
)
@some_examples(66)
@given(data=st.data())
def test_kio_reads_the_same_value_and_writes_the_same_bytes(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    twin = twin_of(cls, version)
    message = data.draw(messages_for_both(cls, version))
    encoded = codec.encode(message, version)
    entity, size = entity_reader(twin)(encoded, 0)
    assert size == len(encoded)
    assert as_ours(cls, entity, version) == message
    written = BytesIO()
    entity_writer(twin)(written, entity)
    assert written.getvalue() == encoded

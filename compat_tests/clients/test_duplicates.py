"""What a producer repeats is recognised, also by a broker that was away in between.

The requests are written by hand: a client would hide the repetition.
"""

from __future__ import annotations

import time

import pytest

from compat_tests.clients import raw
from compat_tests.clients.fixtures import OwnBroker, create_topic, on_apache_kafka
from compat_tests.clients.test_restart import go_away_and_come_back
from compat_tests.twin.batches import R, batch

OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47

TOPIC = "repeated"


def sequenced(producer_id: int, sequence: int, *, epoch: int = 0) -> bytes:
    """Two records with the sequence numbers ``sequence`` and the one after it.

    They are of now: the broker forgets a producer whose last record is a day old.
    """
    records = (R(f"{sequence}".encode()), R(f"{sequence + 1}".encode()))
    return batch(
        *records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        base_timestamp=time.time_ns() // 1_000_000,
    )


def log_end(bootstrap: str) -> int:
    error, offset = raw.list_offset(bootstrap, TOPIC, 0, -1)
    assert error == 0
    return offset


@pytest.mark.parametrize("acks", [-1, 1], ids=["all", "1"])
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_duplicates_are_recognised_after_a_restart(
    own_broker: OwnBroker, how: str, acks: int
) -> None:
    broker = own_broker()
    broker.start()
    create_topic(broker.bootstrap, TOPIC)
    producer_id, _ = raw.init_producer_id(broker.bootstrap)
    sequences = range(0, 14, 2)
    for sequence in sequences:
        sent = raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, sequence), acks=acks)
        assert sent == (0, sequence)

    go_away_and_come_back(broker, how)

    # Five batches are known while a broker runs. Apache Kafka keeps one of them over a restart.
    remembered = sequences[-1:] if on_apache_kafka() else sequences[-5:]
    for sequence in remembered:
        again = raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, sequence), acks=acks)
        assert again == (0, sequence)
    assert log_end(broker.bootstrap) == 14

    gap = raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, 100), acks=acks)
    assert gap[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, 14), acks=acks) == (0, 14)
    assert log_end(broker.bootstrap) == 16


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_an_old_epoch_stays_fenced_after_a_restart(own_broker: OwnBroker, how: str) -> None:
    broker = own_broker()
    broker.start()
    create_topic(broker.bootstrap, TOPIC)
    producer_id, _ = raw.init_producer_id(broker.bootstrap)
    assert raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, 0)) == (0, 0)
    assert raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, 0, epoch=1)) == (0, 2)

    go_away_and_come_back(broker, how)

    fenced = raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, 2))
    assert fenced[0] == INVALID_PRODUCER_EPOCH
    assert raw.produce(broker.bootstrap, TOPIC, sequenced(producer_id, 2, epoch=1)) == (0, 4)
    assert log_end(broker.bootstrap) == 6


def test_producer_ids_are_never_given_twice(own_broker: OwnBroker) -> None:
    broker = own_broker()
    broker.start()
    given = [raw.init_producer_id(broker.bootstrap)[0] for _ in range(3)]
    for how in ("killed", "stopped"):
        go_away_and_come_back(broker, how)
        given += [raw.init_producer_id(broker.bootstrap)[0] for _ in range(3)]
    assert len(set(given)) == 9

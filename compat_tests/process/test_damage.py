"""A byte that the disk damages: its partition is offline and keeps what was acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from compat_tests.clients.fixtures import create_topic
from compat_tests.process.clients import read_all
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.watched import WatchedKlamm

RECORDS = 100
VALUES = [f"value {number}" for number in range(RECORDS)]
# The recovery point on disk stays where the start has left it: below everything.
NO_CHECKPOINTS = {"replica.high.watermark.checkpoint.interval.ms": "3600000"}


def write(bootstrap: str, topic: str, values: Sequence[str]) -> list[int | None]:
    """Write each value in a batch of its own; their offsets, all of them acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    offsets: list[int | None] = []
    for value in values:
        producer.produce(
            topic,
            value.encode(),
            partition=0,
            on_delivery=lambda error, message: offsets.append(None if error else message.offset()),
        )
        assert producer.flush(30) == 0
    return offsets


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def is_led(klamm: WatchedKlamm, topic: str) -> bool:
    found = AdminClient({"bootstrap.servers": klamm.bootstrap}).list_topics(topic, timeout=30)
    return found.topics[topic].partitions[0].leader >= 0


@pytest.mark.timeout(240)
def test_a_byte_above_the_recovery_point(start_klamm: StartKlamm) -> None:
    klamm = start_klamm(NO_CHECKPOINTS)
    for topic in ("hurt", "well"):
        create_topic(klamm.bootstrap, topic)
        assert write(klamm.bootstrap, topic, VALUES) == list(range(RECORDS))
    klamm.kill()
    segment = klamm.data_dir / "hurt-0" / "00000000000000000000.log"
    whole = segment.read_bytes()
    position = whole.index(b"value 50")
    flip(segment, position)
    damaged = segment.read_bytes()
    (fault,) = [line for line in klamm.check() if ": note: " not in line]
    assert fault.startswith(f"{segment}: offset 50, byte ")
    assert "the partition will be offline" in fault
    byte = int(fault.split("byte ")[1].partition(":")[0])
    assert byte < position < byte + 100
    for _ in range(2):
        klamm.output_path.unlink()
        klamm.start()
        (line,) = klamm.complaints()
        assert line.startswith(
            f"partition hurt-0 stays offline: {segment}: damaged batch at byte {byte} (offset 50)"
        )
        assert not is_led(klamm, "hurt")
        assert read_all(klamm.bootstrap, "well")[:RECORDS] == list(enumerate(VALUES))
        write(klamm.bootstrap, "well", ["more"])
        assert segment.read_bytes() == damaged
        # After a clean stop as after a kill.
        klamm.stop()
    flip(segment, position)
    assert segment.read_bytes() == whole
    klamm.output_path.unlink()
    klamm.start()
    assert read_all(klamm.bootstrap, "hurt") == list(enumerate(VALUES))
    assert write(klamm.bootstrap, "hurt", ["more"]) == [RECORDS]
    assert klamm.complaints() == []


def test_a_half_written_end_is_cut(start_klamm: StartKlamm) -> None:
    klamm = start_klamm(NO_CHECKPOINTS)
    create_topic(klamm.bootstrap, "torn")
    write(klamm.bootstrap, "torn", VALUES[:10])
    klamm.kill()
    segment = klamm.data_dir / "torn-0" / "00000000000000000000.log"
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:70])
    klamm.output_path.unlink()
    klamm.start()
    assert read_all(klamm.bootstrap, "torn") == list(enumerate(VALUES[:10]))
    (line,) = klamm.complaints()
    assert "cut at byte" in line

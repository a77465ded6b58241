"""kill -9 while configs are altered: what was answered is there, or what was asked for last."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import admin as confluent_admin
from confluent_kafka.admin import AdminClient

from compat_tests.clients.fixtures import create_topic
from compat_tests.process.clients import IMPATIENT
from compat_tests.process.fixtures import StartKlamm
from compat_tests.process.test_serve import fresh, refusal

# What it exports is not typed as exported.
confluent: Any = confluent_admin

ROUNDS = 5
CHANGES = 5
LONGEST_ROUND_S = 0.2
PATIENCE_S = 30.0


def alter(admin: AdminClient, kind: Any, name: str, setting: str, value: str) -> None:
    operation = confluent.AlterConfigOpType.SET
    change = confluent.ConfigEntry(setting, value, incremental_operation=operation)
    resource = confluent.ConfigResource(kind, name, incremental_configs=[change])
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(PATIENCE_S)


class Altering:
    """Raises one config of each of two resources again and again, in a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **IMPATIENT})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.asked = 100_000
        self.answered = 0
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.asked += 1
            try:
                for kind, name, setting in CONFIGS:
                    alter(self._admin, kind, name, setting, str(self.asked))
            except KafkaException:
                continue
            self.answered = self.asked

    def wait_for_more(self, count: int) -> None:
        wanted, gives_up_at = self.answered + count, time.monotonic() + PATIENCE_S
        while self.answered < wanted:
            assert time.monotonic() < gives_up_at, "nothing is altered any more"
            time.sleep(0.002)

    def stop_soon(self) -> None:
        """The change under way is the last one."""
        self._stopped.set()

    def join(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


CONFIGS = [
    (confluent.ResourceType.TOPIC, "topic", "retention.ms"),
    (confluent.ResourceType.BROKER, "1", "log.roll.ms"),
]


def values(bootstrap: str) -> list[int]:
    admin = AdminClient({"bootstrap.servers": bootstrap, **IMPATIENT})
    found = []
    for kind, name, setting in CONFIGS:
        (future,) = admin.describe_configs([confluent.ConfigResource(kind, name)]).values()
        found.append(int(future.result(PATIENCE_S)[setting].value))
    return found


def test_kills_while_configs_are_altered(start_klamm: StartKlamm) -> None:
    klamm = start_klamm()
    create_topic(klamm.bootstrap, "topic")
    chance = random.Random("configs")
    for _ in range(ROUNDS):
        altering = Altering(klamm.bootstrap)
        try:
            altering.wait_for_more(CHANGES)
            time.sleep(chance.uniform(0, LONGEST_ROUND_S))
        finally:
            klamm.kill()
            altering.stop_soon()
        answered = altering.answered
        klamm.start()
        altering.join()
        # The request under way may have come through, and also one that the client sent again.
        for value in values(klamm.bootstrap):
            assert answered <= value <= altering.asked
    assert klamm.complaints() == []


def test_a_start_that_contradicts_what_was_set(start_klamm: StartKlamm) -> None:
    klamm = start_klamm()
    admin = AdminClient({"bootstrap.servers": klamm.bootstrap, **IMPATIENT})
    alter(admin, confluent.ResourceType.BROKER, "1", "message.max.bytes", "2000000")
    klamm.stop()
    says = refusal(*fresh(klamm.data_dir), "--set", "socket.request.max.bytes=1500000")
    assert "message.max.bytes=2000000" in says
    klamm.start()

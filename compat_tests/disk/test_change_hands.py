"""One data directory, served by klamm and Apache Kafka in turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from compat_tests.apache_kafka import small_kafka, tool
from compat_tests.clients import raw
from compat_tests.clients.fixtures import create_topic
from compat_tests.disk.traveller import Traveller
from compat_tests.klamm_process import KlammProcess, KlammProcessError
from compat_tests.ports import free_ports
from compat_tests.process.watched import run_klamm

pytestmark = [pytest.mark.usefixtures("kafka_jars"), pytest.mark.timeout(400)]

# A few partitions of the coordinators' topics are enough, and groups wait for nothing.
PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
# A snapshot of the metadata after every few records, and short segments; rights can be given.
KAFKA_PROPERTIES = {
    **PROPERTIES,
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "internal.metadata.log.segment.bytes": "1500",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
QUOTA = "producer_byte_rate=12345.0"


class Pair:
    """Both brokers on one directory and one port."""

    def __init__(self, directory: Path) -> None:
        (port,) = free_ports(1)
        self.directory = directory
        self.kafka = small_kafka(directory, port=port, properties=KAFKA_PROPERTIES)
        self.klamm = KlammProcess(directory, port=port, properties=PROPERTIES)
        self.traveller = Traveller(self.klamm.bootstrap)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path / "data")
    yield made
    made.kafka.kill()
    made.klamm.kill()


def test_a_directory_that_klamm_made(pair: Pair) -> None:
    """Killed each time. A setting that only klamm has does Apache Kafka no harm."""
    for broker in (pair.klamm, pair.kafka, pair.klamm, pair.kafka):
        broker.start()
        pair.traveller.visit()
        if broker is pair.klamm:
            name = f"hasty-{pair.traveller.visits}"
            create_topic(broker.bootstrap, name, config={"flush.before.ack": "false"})
        else:
            raw.wait_until_led(broker.bootstrap, f"hasty-{pair.traveller.visits - 1}", 1)
        broker.kill()


def test_a_directory_that_kafka_made(pair: Pair) -> None:
    """Stopped cleanly each time; in the end it is guarded, and klamm leaves it alone."""
    bootstrap = pair.kafka.bootstrap
    with pair.kafka:
        pair.traveller.visit()
        _set(bootstrap, ConfigResource("topic", "plain"), "retention.ms", "777777777")
        _set(bootstrap, ConfigResource("broker", "1"), "message.max.bytes", "2000")
        _configs(bootstrap, "--alter --entity-type clients --entity-name me", QUOTA)
        pair.traveller.expect_configs("plain", retention_ms="777777777", max_message_bytes="2000")
    _check(pair.directory)
    _trim_metadata(pair.directory / "__cluster_metadata-0")
    _check(pair.directory)
    with pair.klamm:
        pair.traveller.visit()
        shown = _configs(bootstrap, "--describe --entity-type topics --entity-name plain")
        assert "retention.ms=777777777 " in shown
        assert any("1 client quotas are kept" in line for line in pair.klamm.stderr_lines())
    _check(pair.directory)
    with pair.kafka:
        pair.traveller.visit()
        assert QUOTA in _configs(bootstrap, "--describe --entity-type clients --entity-name me")
        _guard(bootstrap)
    _check(pair.directory)
    _is_refused(pair.klamm, "guarded by 1 access control entries")


def _set(bootstrap: str, resource: ConfigResource, name: str, value: str) -> None:
    """Change one setting at run time."""
    resource.add_incremental_config(
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def _configs(bootstrap: str, options: str, change: str | None = None) -> str:
    changes = () if change is None else ("--add-config", change)
    done = tool("kafka-configs", "--bootstrap-server", bootstrap, *options.split(), *changes)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _check(directory: Path) -> None:
    """Nothing is wrong in a directory that was stopped cleanly."""
    done = run_klamm("check", str(directory))
    assert done.returncode == 0, done.stdout[-3000:]


def _trim_metadata(directory: Path) -> None:
    """Remove what the newest snapshot stands for, as Apache Kafka does after some days."""
    newest = max(directory.glob("*.checkpoint"))
    end = int(newest.name[:20])
    first = max(int(log.stem) for log in directory.glob("*.log") if int(log.stem) <= end)
    assert first > 0, "there is one segment"
    for path in directory.iterdir():
        offset = re.match("[0-9]{20}", path.name)
        if offset is not None and int(offset[0]) < first and path != newest:
            path.unlink()
    (directory / "leader-epoch-checkpoint").write_text(f"0\n1\n1 {first}\n")


def _guard(bootstrap: str) -> None:
    """Give somebody a right, and so take it from everybody else."""
    acl = AclBinding(
        *(ResourceType.TOPIC, "plain", ResourcePatternType.LITERAL, "User:me", "*"),
        *(AclOperation.READ, AclPermissionType.ALLOW),
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_acls([acl])[acl].result(30)


def _is_refused(klamm: KlammProcess, why: str) -> None:
    """klamm ends with one line that says why, and the directory is as it was."""
    before = _contents(klamm.data_dir)
    with pytest.raises(KlammProcessError, match=re.escape(why)):
        klamm.start()
    assert _contents(klamm.data_dir) == before


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != ".lock"
    }

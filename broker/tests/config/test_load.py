"""From a file and options to the settings of a broker, and every way to be refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.config import ConfigError, ServerConfig, load, tables
from klamm.broker.config.lookup import broker_definition, is_plugin_setting
from klamm.broker.tests.config.refusals import refusal

# The lines of the server.properties that Apache Kafka 4.3 ships.
STOCK = """\
# the roles and addresses of the one node
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600

log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
#log.flush.interval.ms=1000
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

SECRET = "correct-horse-battery"


def refused(settings: dict[str, str]) -> str:
    text = refusal(load, None, settings)
    assert text is not None, f"accepted {settings}"
    return text


def test_kafkas_own_file_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(STOCK)
    config = load(str(file), {})
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(one) for one in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.socket_request_max_bytes == 104857600
    assert config.log_defaults == ServerConfig().log_defaults


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nbroker.rack=a\n")
    config = load(str(file), {"num.partitions": "5"})
    assert (config.num_partitions, config.broker_rack) == (5, "a")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_file_may_be_utf_8_or_what_java_writes(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("broker.rack=Höhle".encode(encoding))
    assert load(str(file), {}).broker_rack == "Höhle"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    remedy = "give --config the path of a file with properties, or leave it out"
    for path, problem in ((missing, "No such file or directory"), (tmp_path, "Is a directory")):
        assert refusal(load, str(path), {}) == f"cannot read {path}: {problem}; {remedy}"


def test_the_number_of_the_node_has_two_names() -> None:
    for name in ("node.id", "broker.id"):
        config = load(None, {name: "7"})
        assert config.node_id == 7
        assert (config.given["node.id"], config.given["broker.id"]) == ("7", "7")
    text = refused({"node.id": "1", "broker.id": "2"})
    assert text == "node.id=1 and broker.id=2 are the same setting; remove broker.id"


def test_the_data_directory_has_two_names() -> None:
    assert load(None, {"log.dir": "/a"}).log_dirs == ("/a",)
    assert load(None, {"log.dir": "/a", "log.dirs": "/b"}).log_dirs == ("/b",)
    assert load(None, {"log.dirs": "/a", "metadata.log.dir": "/a"}).log_dirs == ("/a",)
    assert load(None, {"log.dirs": "/a,/b"}).log_dirs == ("/a", "/b")
    assert load(None, {"log.dirs": "/a,/b"}).metadata_log_dir == "/a"
    assert load(None, {"log.dirs": "/a", "metadata.log.dir": "/m"}).metadata_log_dir == "/m"


def test_own_limits_for_addresses() -> None:
    config = load(None, {"max.connections.per.ip.overrides": "10.0.0.1:5, ::1:7,"})
    assert config.max_connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 7}


def test_a_listeners_own_security_settings_are_accepted() -> None:
    load(
        None,
        {
            "listener.name.plaintext.ssl.keystore.password": SECRET,
            "listener.name.plaintext.plain.sasl.jaas.config": SECRET,
            "rsm.config.anything": "x",
        },
    )


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("num.partition", "did you mean num.partitions?"),
        ("log.retention.hour", "did you mean log.retention.hours?"),
        ("retention.ms", "did you mean log.retention.ms?"),
        ("max.message.bytes", "did you mean message.max.bytes?"),
        ("zookeeper.connect", "remove it, or see docs/configuration.md"),
        ("listener.name.x.num.partitions", "set num.partitions for all listeners instead"),
        ("leader.replication.throttled.rate", "remove it, or see docs/configuration.md"),
        ("", "remove it, or see docs/configuration.md"),
    ],
)
def test_an_unknown_property_names_the_nearest(name: str, suggestion: str) -> None:
    assert refused({name: "1"}) == f"unknown property {name}; {suggestion}"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"num.partitions": "0"}, "num.partitions=0 must be at least 1"),
        ({"num.partitions": "two"}, "num.partitions=two must be a whole number from "),
        ({"auto.create.topics.enable": "1"}, "auto.create.topics.enable=1 must be true or false"),
        ({"log.cleanup.policy": "remove"}, "log.cleanup.policy=remove must only name compact, "),
        ({"compression.type": "br"}, "compression.type=br must be one of uncompressed, zstd, lz4,"),
        ({"compression.gzip.level": "0"}, "compression.gzip.level=0 must be 1 to 9, or -1"),
        ({"log.dirs": "/a", "cordoned.log.dirs": "/b"}, "cordoned.log.dirs=/b is none of log.dirs"),
        ({"log.dirs": "/a,/b,/a/"}, "log.dirs names a directory twice; name each once"),
        (
            {"log.dirs": "/a\0b"},
            "log.dirs has a zero byte in it, which no directory can; remove it",
        ),
        ({"log.dirs": ""}, "log.dirs= must name at least one item"),
        (
            {"process.roles": "broker"},
            "process.roles=broker is not supported by klamm; set process",
        ),
        (
            {"authorizer.class.name": "a.B"},
            "authorizer.class.name=a.B is not supported by klamm; r",
        ),
        (
            {"config.providers": "env"},
            "config.providers=env is not supported by klamm; remove conf",
        ),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip=0 lets nobody in; raise it or s"),
        ({"max.connections.per.ip.overrides": "a"}, "max.connections.per.ip.overrides: a must be "),
        (
            {"max.connections.per.ip.overrides": ":5"},
            "max.connections.per.ip.overrides: :5 must be",
        ),
        ({"queued.max.request.bytes": "1000"}, "queued.max.request.bytes=1000 leaves no room for "),
        (
            {"message.max.bytes": "20000000"},
            "message.max.bytes=20000000 can never arrive; raise so",
        ),
        (
            {"offsets.topic.segment.bytes": "1048575"},
            "offsets.topic.segment.bytes=1048575 is less than any topic may have",
        ),
        (
            {"transaction.state.log.segment.bytes": "1"},
            "transaction.state.log.segment.bytes=1 is less than any topic may have",
        ),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "group.coordinator.rebalance.protocols must name classic",
        ),
        (
            {"group.consumer.min.session.timeout.ms": "50000"},
            "group.consumer.min.session.timeout.ms=50000 must be at most "
            "group.consumer.session.timeout.ms=45000",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "20000"},
            "group.consumer.heartbeat.interval.ms=20000 must be at most "
            "group.consumer.max.heartbeat.interval.ms=15000",
        ),
        (
            {
                "group.consumer.heartbeat.interval.ms": "60000",
                "group.consumer.max.heartbeat.interval.ms": "60000",
            },
            "group.consumer.heartbeat.interval.ms=60000 must be less than "
            "group.consumer.session.timeout.ms=45000",
        ),
        (
            {"group.consumer.max.assignment.interval.ms": "10"},
            "group.consumer.assignment.interval.ms=1000 must be at most "
            "group.consumer.max.assignment.interval.ms=10",
        ),
        ({"group.consumer.assignors": "mine"}, "group.consumer.assignors=mine must only name "),
        ({"offsets.topic.compression.codec": "5"}, "offsets.topic.compression.codec=5 must be "),
        ({"log.roll.ms": "0"}, "log.roll.ms must be at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be at least 0"),
        (
            {"log.retention.ms": "0"},
            "log.retention.ms must be at least 1, or -1 to keep data for e",
        ),
        ({"log.flush.interval.ms": "-1"}, "log.flush.interval.ms must be at least 0"),
        (
            {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"},
            "min.compaction.lag.ms=2 is above max.compaction.lag.ms=1; lower it",
        ),
        (
            {"controller.quorum.voters": "1@a:1,2@b:1"},
            "controller.quorum.voters names 2 nodes; klamm is one, so name at most one",
        ),
        (
            {
                "security.inter.broker.protocol": "PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            },
            "security.inter.broker.protocol and inter.broker.listener.name exclude each other; ",
        ),
    ],
)
def test_a_refusal_says_what_to_do(settings: dict[str, str], text: str) -> None:
    assert refused(settings).startswith(text)


@given(
    st.sampled_from(sorted(tables.broker_definitions())),
    st.text() | st.from_regex(r"[-+]?[0-9]{1,22}", fullmatch=True),
)
def test_any_text_is_accepted_or_refused_in_one_line(name: str, text: str) -> None:
    refusal(load, None, {name: text})


@given(st.text(min_size=1), st.text())
def test_any_name_is_accepted_or_refused_in_one_line(name: str, text: str) -> None:
    answer = refusal(load, None, {name: text})
    is_known = is_plugin_setting(name) or broker_definition(name) is not None
    assert answer is not None or is_known


def test_no_text_shows_a_secret() -> None:
    secrets = {
        name: SECRET
        for name, definition in tables.broker_definitions().items()
        if definition.is_sensitive
    }
    config = load(None, secrets)
    assert SECRET not in repr(config)
    assert "ssl.keystore.password" in repr(config)
    for wrong in ({"num.partitions": "0"}, {"no.such.setting": SECRET}, {"log.dirs": "/a,/a/"}):
        with pytest.raises(ConfigError) as error:
            load(None, {**secrets, **wrong})
        assert SECRET not in str(error.value)


def test_a_short_command_line_loads_few_tables() -> None:
    """Starting must stay cheap: all tables together take as long as the rest of the start."""
    program = (
        "import sys\n"
        "from klamm.broker.config import load\n"
        "config = load(None, {'listeners': 'PLAINTEXT://127.0.0.1:0', 'log.dirs': '/x'})\n"
        "config.with_dynamic({'min.insync.replicas': '1'}, {})\n"
        "print([name.rpartition('.')[2] for name in sys.modules"
        " if name.startswith('klamm.broker.config.') and hasattr(sys.modules[name],"
        " 'DEFINITIONS')])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "['broker_network', 'broker_log']"

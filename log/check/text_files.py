"""The small text files, each line with the byte where it begins; see formats.py."""

import base64
import json
from typing import NamedTuple
from uuid import UUID

from klamm.log.check.formats import Malformed

CHECKPOINT_VERSION = 0
META_PROPERTIES_VERSION = 1


class Line(NamedTuple):
    """A line without its end, and the byte where it begins."""

    at: int
    text: str


class CheckpointEntry(NamedTuple):
    """A line of an offset checkpoint."""

    at: int
    topic: str
    partition: int
    offset: int


class EpochLine(NamedTuple):
    """A line of the checkpoint of leader epochs."""

    at: int
    epoch: int
    start_offset: int


def offset_checkpoint(data: bytes) -> list[CheckpointEntry]:
    """Read an offset checkpoint; one of no bytes was made and never written to.

    Raises:
        Malformed: it is not one, or names a partition twice.
    """
    entries = []
    known = set()
    for at, text in _counted_lines(data):
        fields = text.split(" ")
        if len(fields) != 3 or not fields[0]:
            raise Malformed(at, f"{text!r} is not a topic, a partition and an offset")
        entry = CheckpointEntry(at, fields[0], _number(at, fields[1]), _number(at, fields[2]))
        if entry[1:3] in known:
            raise Malformed(at, f"{entry.topic}-{entry.partition} stands there twice")
        known.add(entry[1:3])
        entries.append(entry)
    return entries


def epoch_checkpoint(data: bytes) -> list[EpochLine]:
    """Read a leader-epoch-checkpoint.

    Raises:
        Malformed: it is not one, or epochs or offsets do not grow.
    """
    entries: list[EpochLine] = []
    for at, text in _counted_lines(data):
        fields = text.split(" ")
        if len(fields) != 2:
            raise Malformed(at, f"{text!r} is not an epoch and an offset")
        entry = EpochLine(at, _number(at, fields[0]), _number(at, fields[1]))
        if entries and not (
            entry.epoch > entries[-1].epoch and entry.start_offset > entries[-1].start_offset
        ):
            raise Malformed(at, f"{text!r} does not follow {entries[-1][1:]}")
        entries.append(entry)
    return entries


def partition_metadata(data: bytes) -> UUID:
    """Return the topic id of a partition.metadata.

    Raises:
        Malformed: it is not one.
    """
    lines = _lines(data)
    if len(lines) != 2:
        raise Malformed(0, f"{len(lines)} lines instead of version and topic_id")
    (version_at, version), (id_at, topic_id) = lines
    if version != "version: 0":
        raise Malformed(version_at, f"{version!r} is not 'version: 0'")
    label, _, text = topic_id.partition(": ")
    value = kafka_uuid(text)
    if label != "topic_id" or value is None:
        raise Malformed(id_at, f"{topic_id!r} is not a topic id")
    return value


class MetaProperties(NamedTuple):
    """What meta.properties says."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def meta_properties(data: bytes) -> MetaProperties:
    """Read a meta.properties.

    Raises:
        Malformed: a line is none of a properties file, or an entry is missing or senseless.
    """
    entries = {line.text.partition("=")[0].strip(): line for line in property_lines(data)}

    def value(name: str) -> tuple[int, str]:
        if name not in entries:
            raise Malformed(0, f"there is no {name}")
        return entries[name].at, entries[name].text.partition("=")[2].strip()

    at, version = value("version")
    if version != str(META_PROPERTIES_VERSION):
        raise Malformed(at, f"version {version!r} is unknown")
    at, cluster_id = value("cluster.id")
    if not cluster_id:
        raise Malformed(at, "the cluster id is empty")
    at, node_id = value("node.id")
    number = _number(at, node_id)
    at, directory_id = value("directory.id")
    identity = kafka_uuid(directory_id)
    if identity is None:
        raise Malformed(at, f"{directory_id!r} is not a directory id")
    return MetaProperties(cluster_id, number, identity)


def check_quorum_state(data: bytes) -> None:
    """Check a quorum-state: the last election, and in older versions the voters.

    Raises:
        Malformed: it is not one.
    """
    try:
        state = json.loads(data)
    except ValueError as error:
        raise Malformed(0, f"not JSON: {error}") from None
    if not isinstance(state, dict) or not _is_whole_number(state.get("leaderEpoch")):
        raise Malformed(0, "there is no leaderEpoch")
    voters = state.get("currentVoters") or []
    if not isinstance(voters, list) or not all(
        isinstance(voter, dict) and _is_whole_number(voter.get("voterId")) for voter in voters
    ):
        raise Malformed(0, "currentVoters has one without a voterId")


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def boot_file(data: bytes) -> tuple[str, list[str]]:
    """Return the id of a boot and the names of damaged partitions.

    Raises:
        Malformed: it is no text.
    """
    lines = [line.text for line in _lines(data)] or [""]
    return lines[0], lines[1:]


def property_lines(data: bytes) -> list[Line]:
    """Return the lines `name=value` of a properties file, without comments.

    Raises:
        Malformed: a line is no such line, or names what another one has named.
    """
    found: dict[str, Line] = {}
    for line in _lines(data):
        text = line.text.strip()
        if not text or text[0] in "#!":
            continue
        name, separator, _ = text.partition("=")
        if not separator:
            raise Malformed(line.at, f"{text!r} is not name=value")
        if name.strip() in found:
            raise Malformed(line.at, f"{name.strip()} stands there twice")
        found[name.strip()] = line
    return list(found.values())


def kafka_uuid(text: str) -> UUID | None:
    """Return the id that 22 characters of base64 stand for; None when they stand for none."""
    if (
        len(text) != 22
        or not text.isascii()
        or not text.replace("-", "").replace("_", "").isalnum()
    ):
        return None
    value = UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    # The last character has two bits to spare.
    return value if uuid_text(value) == text else None


def uuid_text(value: UUID) -> str:
    """Return an id as Kafka prints it."""
    return base64.urlsafe_b64encode(value.bytes).decode("ascii")[:22]


def _lines(data: bytes) -> list[Line]:
    lines = []
    at = 0
    for raw in data.splitlines(keepends=True):
        try:
            lines.append(Line(at, raw.decode("utf-8").rstrip("\r\n")))
        except UnicodeDecodeError as error:
            raise Malformed(at + error.start, "not text") from None
        at += len(raw)
    return lines


def _counted_lines(data: bytes) -> list[Line]:
    if not data:
        return []
    if not data.endswith(b"\n"):
        raise Malformed(len(data), "the last line has no end")
    lines = _lines(data)
    if _number(*lines[0]) != CHECKPOINT_VERSION:
        raise Malformed(0, f"version {lines[0].text} is unknown")
    if len(lines) < 2:
        raise Malformed(len(data), "the number of entries is missing")
    entries = lines[2:]
    if _number(*lines[1]) != len(entries):
        raise Malformed(lines[1].at, f"{lines[1].text} entries announced, {len(entries)} are there")
    return entries


def _number(at: int, text: str) -> int:
    # int() would also take signs, spaces, underscores, foreign digits and leading zeros.
    if not text.isascii() or not text.isdigit() or (text[0] == "0" and len(text) > 1):
        raise Malformed(at, f"{text[:40]!r} is not a number")
    return int(text)

"""Small text files that are replaced as a whole: old or new after a crash, never neither.

    replace: write `<name>.tmp` · sync it · rename it over `<name>` · sync the directory

Formats, each Kafka's:

- offset checkpoints (`replication-offset-checkpoint`, `recovery-point-offset-checkpoint`,
  `log-start-offset-checkpoint`, `cleaner-offset-checkpoint`): version 0, number of entries,
  `topic partition offset` lines;
- `leader-epoch-checkpoint`: version 0, number of entries, `epoch start_offset` lines (the lines
  themselves are leader_epochs.py's);
- `partition.metadata`: `version: 0` and `topic_id: <22 characters of base64>`.

A file that cannot be understood is refused (CorruptFileError): taking it for empty would silently
forget what it promised. A file of zero bytes may be one that Kafka created and did not come to
write; a replacement in the way above cannot leave one. Where Kafka can't have left it, it is
refused as well (checkpoint_files.py).
"""

import base64
from collections.abc import Mapping
from uuid import UUID

from klamm.log.errors import CorruptFileError
from klamm.log.fs import FileSystem, read_file
from klamm.log.layout import TEMPORARY_SUFFIX, TopicPartition

CURRENT_VERSION = 0
ZERO_UUID = UUID(int=0)

Offsets = dict[TopicPartition, int]


def replace_file(
    fs: FileSystem, directory: str, name: str, content: bytes, *, sync_directory: bool = True
) -> None:
    """Replace a file so that a crash at any point leaves its old or its new content.

    Args:
        sync_directory: False leaves the new name unsynced; the caller syncs the directory later,
            and until then a crash may bring the old content (or no file) back.
    """
    path = f"{directory}/{name}"
    temporary = path + TEMPORARY_SUFFIX
    file = fs.open(temporary, create=True)
    # A crash may have left an older temporary file behind.
    file.truncate(0)
    file.append([content], len(content))
    file.datasync()
    fs.rename(temporary, path)
    if sync_directory:
        fs.sync_directory(directory)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the text of an offset checkpoint."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return _encode_lines(lines)


def read_offsets(fs: FileSystem, path: str) -> Offsets:
    """Return the offsets of a checkpoint file; none when there is no such file.

    Raises:
        CorruptFileError: the file is there and cannot be understood.
    """
    offsets: Offsets = {}
    for line in _read_lines(fs, path):
        fields = line.split(" ")
        if len(fields) != 3:
            raise CorruptFileError(path, f"malformed line {line!r}")
        topic, partition, offset = fields
        key = (topic, _number(path, partition))
        if key in offsets:
            raise CorruptFileError(path, f"two entries for {topic}-{partition}")
        offsets[key] = _number(path, offset)
    return offsets


def encode_uuid(value: UUID) -> str:
    """Return a uuid the way Kafka prints it: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def decode_uuid(text: str) -> UUID:
    """Read a uuid that Kafka printed.

    Raises:
        ValueError: it is not one.
    """
    if len(text) == 22 and text.isascii():
        value = UUID(bytes=base64.urlsafe_b64decode(text + "=="))
        # The decoder skips what it does not know, and the last character has bits to spare.
        if encode_uuid(value) == text:
            return value
    raise ValueError(f"{text!r} is not 22 characters of base64")


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """Return the text of partition.metadata."""
    return f"version: {CURRENT_VERSION}\ntopic_id: {encode_uuid(topic_id)}".encode()


def read_partition_metadata(fs: FileSystem, path: str) -> UUID:
    """Return the topic id that a partition's directory belongs to; the zero uuid without a file.

    Raises:
        CorruptFileError: the file is there and cannot be understood.
    """
    if not fs.exists(path):
        return ZERO_UUID
    lines = _decode_text(path, read_file(fs, path)).splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    if len(lines) != 2 or fields.keys() != {"version", "topic_id"}:
        raise CorruptFileError(path, f"malformed partition metadata {lines!r}")
    if fields["version"] != str(CURRENT_VERSION):
        raise CorruptFileError(path, f"unknown version {fields['version']!r}")
    try:
        return decode_uuid(fields["topic_id"])
    except ValueError as error:
        raise CorruptFileError(path, f"malformed topic id: {error}") from error


def _encode_lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in [CURRENT_VERSION, len(lines), *lines]).encode()


def _read_lines(fs: FileSystem, path: str) -> list[str]:
    if not fs.exists(path):
        return []
    text = _decode_text(path, read_file(fs, path))
    if not text:
        return []
    if not text.endswith("\n"):
        raise CorruptFileError(path, "the last line has no end")
    version, *rest = text[:-1].split("\n")
    if _number(path, version) != CURRENT_VERSION:
        raise CorruptFileError(path, f"unknown version {version!r}")
    if not rest:
        raise CorruptFileError(path, "the number of entries is missing")
    count, *lines = rest
    if _number(path, count) != len(lines):
        raise CorruptFileError(path, f"{count} entries announced, {len(lines)} found")
    return lines


def _decode_text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, f"not text: {error}") from error


def _number(path: str, text: str) -> int:
    # int() would also take spaces, underscores and foreign digits.
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise CorruptFileError(path, f"{text!r} is not a number")
    return int(text)

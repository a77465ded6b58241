"""The file meta.properties: to which cluster and node a data directory belongs.

A Java properties file with four entries: `version=1`, `cluster.id`, `node.id`, `directory.id`. The
ids are uuids as Kafka prints them. A directory of another node or of an unknown version is refused
before anything in it is touched. So is one that has lost the file: partitions are assigned to the
directory by its id, and with another one they would be nowhere.
"""

import uuid
from typing import NamedTuple
from uuid import UUID

from klamm.log.checkpoint import decode_uuid, encode_uuid, replace_file
from klamm.log.errors import CorruptFileError, InconsistentDirectoryError
from klamm.log.fs import FileSystem, read_file
from klamm.log.layout import META_PROPERTIES
from klamm.log.stored_partitions import stored_partitions

CURRENT_VERSION = "1"


class MetaProperties(NamedTuple):
    """What meta.properties says."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def random_uuid() -> UUID:
    """Return a random id whose printed form never looks like a command line option."""
    while True:
        value = uuid.uuid4()
        if not encode_uuid(value).startswith("-"):
            return value


def read_meta_properties(fs: FileSystem, root: str) -> MetaProperties | None:
    """Return whose a data directory is; None when it is new, or not there yet.

    Raises:
        InconsistentDirectoryError: it is of another version, or has lost the file.
        CorruptFileError: the file can't be understood.
    """
    path = f"{root}/{META_PROPERTIES}"
    if fs.exists(path):
        return decode_meta_properties(read_file(fs, path), path)
    if fs.exists(root) and next(stored_partitions(fs, root), None) is not None:
        raise InconsistentDirectoryError(
            f"{root} has partitions, but no {META_PROPERTIES}; put that file back,"
            " or choose another directory"
        )
    return None


def ensure_meta_properties(
    fs: FileSystem, root: str, node_id: int, cluster_id: str | None
) -> MetaProperties:
    """Return whose a data directory is, which is written down when it is new.

    Args:
        cluster_id: the cluster that it has to be of; without one, any, or a new one.

    Raises:
        InconsistentDirectoryError: it belongs to another node or cluster, or to another version, or
            has lost the file.
        CorruptFileError: the file can't be understood.
    """
    properties = read_meta_properties(fs, root)
    if properties is None:
        properties = MetaProperties(
            cluster_id or encode_uuid(random_uuid()), node_id, random_uuid()
        )
        replace_file(fs, root, META_PROPERTIES, encode_meta_properties(properties))
        return properties
    if properties.node_id != node_id:
        raise InconsistentDirectoryError(
            f"{root} belongs to node {properties.node_id}, this is node {node_id};"
            " set node.id accordingly, or choose another directory"
        )
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise InconsistentDirectoryError(
            f"{root} belongs to cluster {properties.cluster_id}, this is cluster {cluster_id};"
            " choose another directory"
        )
    return properties


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """Return the text of the file."""
    entries = {
        "cluster.id": properties.cluster_id,
        "directory.id": encode_uuid(properties.directory_id),
        "node.id": properties.node_id,
        "version": CURRENT_VERSION,
    }
    return "".join(f"{key}={value}\n" for key, value in entries.items()).encode("ascii")


def decode_meta_properties(data: bytes, file: str) -> MetaProperties:
    """Read the text of the file.

    Raises:
        InconsistentDirectoryError: the file is of another version.
        CorruptFileError: an entry is missing or can't be understood.
    """
    entries = _parse(data, file)
    version = entries.get("version")
    if version != CURRENT_VERSION:
        raise InconsistentDirectoryError(
            f"{file}: version {version} is unknown, {CURRENT_VERSION} is needed;"
            " use the program that wrote the directory, or choose another directory"
        )
    try:
        return MetaProperties(
            entries["cluster.id"], int(entries["node.id"]), decode_uuid(entries["directory.id"])
        )
    except KeyError as error:
        raise CorruptFileError(file, f"there is no {error.args[0]}") from error
    except ValueError as error:
        raise CorruptFileError(file, str(error)) from error


def _parse(data: bytes, file: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    try:
        lines = data.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFileError(file, f"not text: {error}") from error
    for line in map(str.strip, lines):
        if not line or line[0] in "#!":
            continue
        key, separator, value = line.partition("=")
        if not separator or key.strip() in entries:
            raise CorruptFileError(file, f"malformed line {line!r}")
        entries[key.strip()] = value.strip()
    return entries

"""From a server.properties file and `--set` options to a `ServerConfig`."""

from collections.abc import Mapping

from klamm.broker.config.errors import ConfigError, shown
from klamm.broker.config.layers import Layers
from klamm.broker.config.properties import parse_properties
from klamm.broker.config.server_config import ServerConfig, build


def load(path: str | None, overrides: Mapping[str, str]) -> ServerConfig:
    """Returns the settings of a broker.

    Args:
        path: A file in Java's properties syntax, or None for none.
        overrides: Settings that win over the file.

    Raises:
        ConfigError: The file cannot be read, or a setting cannot be used. The text is one line.
    """
    return from_properties({**read_file(path), **overrides})


def from_properties(properties: Mapping[str, str]) -> ServerConfig:
    """Returns the settings of a broker that is told these properties; see `load`."""
    static = dict(properties)
    # A node has one number under two names, and both are listed (DescribeConfigs).
    if "node.id" in static or "broker.id" in static:
        static.setdefault("node.id", static.get("broker.id", ""))
        static.setdefault("broker.id", static["node.id"])
    return build(Layers(static))


def read_file(path: str | None) -> dict[str, str]:
    """Returns what a file sets, unchecked; nothing without a file.

    Raises:
        ConfigError: The file cannot be read. The text is one line.
    """
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ConfigError(
            f"cannot read {shown(path)}: {error.strerror or error}; "
            "give --config the path of a file with properties, or leave it out"
        ) from error
    try:
        # Editors may begin a file with a byte-order mark, which is no part of its first name.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Java reads these files as Latin-1, in which every byte is a character.
        text = content.decode("latin-1")
    try:
        return parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None

"""The one way in which a configuration can be wrong."""

_SHOWN_CHARACTERS_MAX = 100


class ConfigError(Exception):
    """A setting that cannot be used; the text is one line that says what to do about it."""


def shown(text: str) -> str:
    """Returns a foreign text as it may stand in a one-line message: printable and short."""
    if len(text) > _SHOWN_CHARACTERS_MAX:
        text = text[:_SHOWN_CHARACTERS_MAX] + "…"
    return "".join(character if character.isprintable() else "?" for character in text)

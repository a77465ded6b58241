"""What a configuration is refused with, and what every such text must be."""

from collections.abc import Callable
from typing import Any

from klamm.broker.config.errors import ConfigError

LENGTH_MAX = 400


def refusal(action: Callable[..., Any], *arguments: Any) -> str | None:
    """Returns the text of the ConfigError that an action ends with, or None without one.

    Any other exception is a mistake, and so is a text that is not one short, printable line.
    """
    try:
        action(*arguments)
    except ConfigError as refused:
        text = str(refused)
    else:
        return None
    assert text.isprintable(), repr(text)
    assert 0 < len(text) <= LENGTH_MAX, repr(text)
    return text

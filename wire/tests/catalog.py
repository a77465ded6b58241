"""Every declared message in every version: what a test walks that must leave none out."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from klamm.wire import messages
from klamm.wire.messages import stored
from klamm.wire.schema import Message


def _declared_in(package_name: str, path: list[str]) -> list[type[Message]]:
    found = []
    for module_info in iter_modules(path):
        if module_info.ispkg:
            continue
        module = import_module(f"{package_name}.{module_info.name}")
        found += [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Message) and value is not Message
        ]
    return found


SENT = _declared_in("klamm.wire.messages", list(messages.__path__))
STORED = _declared_in("klamm.wire.messages.stored", list(stored.__path__))

MESSAGES = [*SENT, *STORED]


def versions_of(cls: type[Message]) -> range:
    return range(cls.VERSIONS.first, cls.VERSIONS.last + 1)


MESSAGES_AND_VERSIONS = [(cls, version) for cls in MESSAGES for version in versions_of(cls)]

every_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)

every_message_and_version = pytest.mark.parametrize(
    ("cls", "version"),
    MESSAGES_AND_VERSIONS,
    ids=[f"{cls.__name__}-v{version}" for cls, version in MESSAGES_AND_VERSIONS],
)

"""ListConfigResources: what has settings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def in_order(*topics: str) -> Callable[[Plain], Plain]:
    """Of all topics only these: others come and go while a test runs. Kafka's order is a hash's."""

    def sort(reply: Plain) -> Plain:
        kept = [
            one
            for one in reply["config_resources"]
            if one.get("resource_type") != TOPIC or one["resource_name"] in topics
        ]
        kept.sort(key=lambda one: (one.get("resource_type", 0), one["resource_name"]))
        return {**reply, "config_resources": kept}

    return sort


def ask(talk: Conversation, version: int, kinds: list[int], *topics: str) -> None:
    body = {"resource_types": kinds}
    talk.ask("list_config_resources", version, body, prepare=in_order(*topics))


@pytest.mark.every_version("list_config_resources")
def test_kinds(twin: Twin, talk: Conversation, version: int) -> None:
    topics = twin.create_topic(), twin.create_topic(configs={"retention.bytes": "5000000"})
    for kinds in (
        [],
        [TOPIC],
        [BROKER],
        [LOGGER],
        [METRICS],
        [GROUP],
        [TOPIC, TOPIC],
        [GROUP, LOGGER, METRICS, BROKER, TOPIC],
    ):
        ask(talk, version, kinds, *topics)


@pytest.mark.every_version("list_config_resources")
def test_kinds_without_settings(talk: Conversation, version: int) -> None:
    for kinds in ([0], [1], [3], [64], [127], [-1], [-128], [TOPIC, 1], [1, BROKER]):
        ask(talk, version, kinds)

"""UpdateFeatures: levels up, down and off; one mistake refuses all of a request."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

GROUPS, METADATA = "group.version", "metadata.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def to(name: str, level: int, kind: int = UPGRADE, **fields: Any) -> Plain:
    return {"feature": name, "max_version_level": level, "upgrade_type": kind, **fields}


def update(*updates: Plain, **fields: Any) -> Plain:
    return {"feature_updates": list(updates), "timeout": 10_000, **fields}


def wait_until_level(twin: Twin, level: int) -> None:
    """Until both brokers know it: Kafka's controller answers before its broker has heard."""
    body = {"client_software_name": "twin", "client_software_version": "1"}

    def agreed(reply: Plain) -> bool:
        features = {one["name"]: one["max_version_level"] for one in reply["finalized_features"]}
        return bool(features.get(GROUPS, 0) == level)

    twin.wait("api_versions", 4, body, agreed)


@pytest.mark.every_version("update_features")
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_changes_nothing(talk: Conversation, version: int, validate_only: bool) -> None:
    for updates in (
        [],
        [to(GROUPS, 1)],
        [to(METADATA, 30)],
        [to(GROUPS, 1), to(METADATA, 30)],
        [to(GROUPS, 1), to(GROUPS, 1)],
        [to(GROUPS, 1, SAFE)],
        [to(GROUPS, 1, UNSAFE)],
    ):
        for timeout in (10_000, 0, -1):
            body = update(*updates, validate_only=validate_only, timeout=timeout)
            talk.ask("update_features", version, body)


REFUSED = [
    [to(GROUPS, 0)],
    [to(GROUPS, 0, allow_downgrade=True)],
    [to(GROUPS, 2)],
    [to(GROUPS, 2, SAFE)],
    [to(GROUPS, -1)],
    [to(GROUPS, -1, SAFE)],
    [to(GROUPS, 32767)],
    [to(METADATA, 31)],
    [to(METADATA, 29)],
    [to(METADATA, 29, SAFE)],
    [to(METADATA, 28, UNSAFE)],
    [to(METADATA, 7, SAFE)],
    [to(METADATA, 0, UNSAFE)],
    [to("nothing", 1)],
    [to("nothing", 0)],
    [to("nothing", 0, SAFE)],
    [to("", 1)],
    [to(GROUPS, 1), to("nothing", 1)],
    [to(GROUPS, 1), to(GROUPS, 0)],
]


@pytest.mark.every_version("update_features")
@pytest.mark.parametrize("validate_only", [False, True])
def test_refused(talk: Conversation, version: int, validate_only: bool) -> None:
    for updates in REFUSED:
        talk.ask("update_features", version, update(*updates, validate_only=validate_only))


@pytest.mark.every_version("update_features")
def test_kinds_of_upgrade(talk: Conversation, version: int) -> None:
    """Version 0 has none, so there they do no harm."""
    for updates in (
        [to(GROUPS, 1, 0)],
        [to(GROUPS, 1, 4)],
        [to(GROUPS, 1, -1)],
        [to(GROUPS, 1, 9), to(GROUPS, 1)],
        [to(GROUPS, 1), to(GROUPS, 1, 9)],
    ):
        talk.ask("update_features", version, update(*updates))


@pytest.mark.every_version("update_features", since=1)
@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_off_and_on_again(twin: Twin, talk: Conversation, version: int, kind: int) -> None:
    off, on = update(to(GROUPS, 1), to(GROUPS, 0, kind)), update(to(GROUPS, 1))
    talk.ask("update_features", version, {**off, "validate_only": True})
    wait_until_level(twin, 1)
    try:
        talk.ask("update_features", version, off)
        wait_until_level(twin, 0)
        # Down again is no mistake, up again must not be called a downgrade.
        talk.ask("update_features", version, update(to(GROUPS, 0)))
        talk.ask("update_features", version, update(to(GROUPS, 1, kind)))
        heartbeat = {
            "group_id": "group",
            "member_id": "member",
            "member_epoch": 0,
            "rebalance_timeout": 1000,
            "subscribed_topic_names": [],
            "topic_partitions": [],
        }
        talk.ask("consumer_group_heartbeat", 1, heartbeat)
        talk.ask("consumer_group_describe", 1, {"group_ids": ["group"]})
    finally:
        talk.ask("update_features", version, on)
        wait_until_level(twin, 1)


@pytest.mark.every_version("update_features")
def test_features_that_klamm_does_not_have(talk: Conversation, version: int) -> None:
    for name, level in (("share.version", 1), ("kraft.version", 1)):
        body = update(to(name, level), validate_only=True)
        talk.ask("update_features", version, body, deviation="D-022")


@pytest.mark.every_version("update_features")
def test_the_version_of_transactions(talk: Conversation, version: int) -> None:
    for level in (2, 3, -1):
        talk.ask(
            "update_features", version, update(to("transaction.version", level), validate_only=True)
        )

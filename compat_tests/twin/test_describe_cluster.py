"""DescribeCluster: this broker alone, as every other cluster of one."""

from __future__ import annotations

import pytest

from compat_tests.twin.conversation import Conversation

both = pytest.mark.parametrize("operations", [False, True])


@pytest.mark.every_version("describe_cluster")
@both
def test_brokers(talk: Conversation, version: int, operations: bool) -> None:
    body = {"include_cluster_authorized_operations": operations}
    talk.ask("describe_cluster", version, body)


@pytest.mark.every_version("describe_cluster", since=1)
@both
@pytest.mark.parametrize("endpoint_type", [1, 2, 0, 3, -1, 127, -128])
def test_endpoint_types(
    talk: Conversation, version: int, operations: bool, endpoint_type: int
) -> None:
    """1 are brokers; 2 are controllers, which a broker's listener does not describe."""
    body = {
        "include_cluster_authorized_operations": operations,
        "endpoint_type": endpoint_type,
    }
    talk.ask("describe_cluster", version, body)


@pytest.mark.every_version("describe_cluster", since=2)
@pytest.mark.parametrize("fenced", [False, True])
def test_fenced_brokers(talk: Conversation, version: int, fenced: bool) -> None:
    talk.ask("describe_cluster", version, {"include_fenced_brokers": fenced})

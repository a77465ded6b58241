"""DescribeQuorum: one controller, which is the broker itself."""

from __future__ import annotations

import pytest

from compat_tests.twin.codec import Plain
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.topics import Twin

METADATA = "__cluster_metadata"


def asked(*topics: tuple[str, list[int]]) -> Plain:
    return {
        "topics": [
            {"topic_name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics
        ]
    }


@pytest.mark.every_version("describe_quorum")
def test_the_quorum(talk: Conversation, version: int) -> None:
    deviation = "D-021" if version >= 2 else None
    pair = talk.ask("describe_quorum", version, asked((METADATA, [0])), deviation=deviation)
    for side in talk.sides:
        (partition,) = pair[side]["topics"][0]["partitions"]
        (voter,) = partition["current_voters"]
        assert voter["log_end_offset"] >= partition["high_watermark"] > 0


@pytest.mark.every_version("describe_quorum")
def test_anything_else_is_unknown(twin: Twin, talk: Conversation, version: int) -> None:
    topic = twin.create_topic()
    for body in (
        asked(),
        asked((METADATA, [])),
        asked((METADATA, [1])),
        asked((METADATA, [-1])),
        asked((METADATA, [0, 0])),
        asked((METADATA, [0, 1])),
        asked((METADATA, [0]), (METADATA, [0])),
        asked((METADATA, [0]), (topic, [0])),
        asked((METADATA, [0]), ("", [])),
        asked((topic, [0])),
        asked((topic, [7]), ("", [0, 1])),
    ):
        talk.ask("describe_quorum", version, body)

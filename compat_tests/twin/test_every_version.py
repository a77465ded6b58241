"""Whatever klamm advertises is compared with Apache Kafka, in every version."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.clients import raw
from compat_tests.klamm_process import KlammProcess
from compat_tests.twin.codec import api_key
from compat_tests.twin.conversation import Conversation
from compat_tests.twin.marks import versions_of

PRODUCE = 0
# Advertised for the sake of librdkafka, as Kafka does, and served by neither (KIP-896).
PRODUCE_FOR_SHOW = (0, 1, 2)


def test_every_advertised_version_is_compared(klamm: KlammProcess) -> None:
    """Read from the marks of all tests here, whichever of them are run, and in which process."""
    advertised = {
        (key, version)
        for key, (lowest, highest) in raw.api_version_ranges(klamm.bootstrap).items()
        for version in range(lowest, highest + 1)
    }
    for_show = {(PRODUCE, version) for version in PRODUCE_FOR_SHOW}
    assert advertised - set(marked()) == for_show


def marked() -> Iterator[tuple[int, int]]:
    """API keys and versions that some test is run with; each test proves that it asks in them."""
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"{__package__}.{file.stem}")
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "every_version":
                    yield from ((api_key(mark.args[0]), one) for one in versions_of(mark))


@pytest.mark.parametrize("version", PRODUCE_FOR_SHOW)
def test_produce_in_versions_that_are_for_show(talk: Conversation, version: int) -> None:
    """Both close; the codec of the other tests does not have these versions."""
    header = struct.pack(">hhih", PRODUCE, version, 1, 4) + b"twin"
    no_topics = struct.pack(">hii", 1, 1000, 0)
    frame = header + no_topics
    talk.send_raw(struct.pack(">i", len(frame)) + frame)
    talk.expect_closed()

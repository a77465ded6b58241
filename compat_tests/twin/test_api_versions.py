"""ApiVersions: the first thing every client asks, in versions it cannot know yet."""

from __future__ import annotations

import struct

import pytest

from compat_tests.twin.conversation import CLOSED, Conversation
from compat_tests.twin.topics import Twin

NAMED = {"client_software_name": "twin-client", "client_software_version": "1.0"}
UNSUPPORTED = [5, 6, 99, 32767, -1]


@pytest.mark.every_version("api_versions")
def test_served_apis_and_features(talk: Conversation, version: int) -> None:
    talk.ask("api_versions", version, NAMED, deviation="D-001")


@pytest.mark.parametrize("wanted", UNSUPPORTED)
@pytest.mark.parametrize(
    ("tags", "answered"),
    [(b"\x00", True), (b"\x01\x05\x02ab", True), (b"", False), (b"\x01\x05", False)],
    ids=["no tags", "a tag", "cut off", "cut off in a tag"],
)
def test_an_unknown_version_is_answered_in_version_0(
    twin: Twin, wanted: int, tags: bytes, answered: bool
) -> None:
    """The body may have any form, since a broker cannot know what a later version looks like.

    The header it must be able to read; negative versions have one without tags.
    """
    for body in (b"", b"\x02a\x02b\x00", b"\xff" * 40):
        if body and not answered:
            continue
        header = struct.pack(">hhih", 18, wanted, 7, 4) + b"twin" + tags
        frame = header + body
        with twin.conversation() as talk:
            talk.send_raw(struct.pack(">i", len(frame)) + frame)
            reply = talk.receive("api_versions", 0, correlation_id=7).kafka
        assert (reply == CLOSED) is (wanted >= 0 and not answered)


@pytest.mark.every_version("api_versions", since=3)
@pytest.mark.parametrize(
    ("name", "software_version"),
    [
        *(("", "1.0"), ("twin", ""), ("", ""), ("twin client", "1.0"), ("-twin", "1.0")),
        *(("twin", "1.0-"), ("twin\n", "1.0"), ("a.b-c", "1.0.0-rc.1"), ("ä", "1"), ("a_b", "1")),
    ],
)
def test_names_of_client_software(
    talk: Conversation, version: int, name: str, software_version: str
) -> None:
    """KIP-511 limits them to letters, digits, dots and dashes, with a letter or digit at the ends.

    The reply to a refused name carries no keys, so nothing of D-001 shows in it.
    """
    body = {"client_software_name": name, "client_software_version": software_version}
    only_error = {"error_code": "none"}
    talk.ask(
        *("api_versions", version, body),
        prepare=lambda reply: only_error if reply["error_code"] == "none" else reply,
    )


def test_api_versions_may_be_asked_again(talk: Conversation) -> None:
    for version in (4, 0, 3, 4):
        talk.ask("api_versions", version, NAMED, deviation="D-001")

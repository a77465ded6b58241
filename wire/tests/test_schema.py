"""Declared classes: defaults, equality, and one shared default where nobody can change it."""

import copy
from typing import Any

import pytest

from klamm.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from klamm.wire.messages.fetch import EpochEndOffset, FetchRequest, FetchTopic, PartitionData
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.schema import (
    ALL_VERSIONS,
    NO_VERSIONS,
    OPEN_END,
    Message,
    Versions,
    versions_of,
)
from klamm.wire.tests.catalog import every_message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ALL_VERSIONS),
        ("none", NO_VERSIONS),
        ("3", Versions(3, 3)),
        ("3+", Versions(3, OPEN_END)),
        ("3-13", Versions(3, 13)),
    ],
)
def test_version_ranges(text: str, expected: Versions) -> None:
    assert versions_of(text) == expected


def test_a_range_holds_its_ends_and_nothing_else() -> None:
    assert [version for version in range(-1, 7) if version in Versions(2, 4)] == [2, 3, 4]
    assert 0 not in NO_VERSIONS
    text: object = "3"
    assert text not in Versions(0, 9)


def test_defaults_are_those_of_the_declaration() -> None:
    request = FetchRequest()
    assert request.cluster_id is None
    assert request.replica_id == -1
    assert request.max_bytes == 0x7FFFFFFF
    assert request.topics == []
    assert request.rack_id == ""
    assert PartitionData().records is None


@every_message
def test_no_two_messages_share_a_default_that_can_change(cls: type[Message]) -> None:
    one, other = cls(), cls()
    assert one == other
    for declared in cls.FIELDS:
        first, second = getattr(one, declared.name), getattr(other, declared.name)
        if isinstance(first, list):
            assert first is not second


def test_a_shared_default_struct_refuses_change_and_equals_an_ordinary_one() -> None:
    shared = PartitionData().diverging_epoch
    assert shared is PartitionData().diverging_epoch
    assert shared == EpochEndOffset()
    assert EpochEndOffset() == shared
    assert copy.deepcopy(shared) is shared
    with pytest.raises(AttributeError, match="assign a new one to the message"):
        shared.epoch = 5


def test_fields_are_given_by_name_and_unknown_ones_refused() -> None:
    assert ApiVersion(api_key=3, max_version=13).max_version == 13
    unchecked: Any = ApiVersion
    with pytest.raises(TypeError):
        unchecked(api_kee=3)
    with pytest.raises(TypeError):
        unchecked(3)
    with pytest.raises(AttributeError):
        unchecked().api_kee = 3


def test_messages_are_compared_by_value_and_class() -> None:
    assert MetadataRequest() == MetadataRequest()
    assert MetadataRequest() != MetadataRequest(topics=None)
    assert MetadataRequest() != FetchRequest()
    assert MetadataRequest() != "MetadataRequest()"
    with pytest.raises(TypeError):
        hash(MetadataRequest())


def test_a_message_shows_its_fields() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=1)], throttle_time_ms=7)
    text = repr(response)
    assert text.startswith("ApiVersionsResponse(error_code=0, api_keys=[ApiVersion(api_key=1,")
    assert "throttle_time_ms=7" in text


def test_a_message_can_be_copied() -> None:
    request = FetchRequest(rack_id="a")
    twin = copy.deepcopy(request)
    twin.topics.append(FetchTopic())
    assert request.topics == []
    assert twin.rack_id == "a"

"""The table of APIs and the declarations say the same."""

import pytest

from klamm.wire.registry import (
    API_KEYS,
    API_NAMES,
    BROKER_API_KEYS,
    VERSION_BOUNDS,
    api,
    is_flexible,
)
from klamm.wire.tests.catalog import MESSAGES_AND_VERSIONS, SENT

# Declared, but not stable in Kafka 4.3: (API key, version).
UNSTABLE = {(22, 6)}


def test_kafka_4_3_has_89_apis_of_which_brokers_serve_77() -> None:
    assert len(API_KEYS) == 89
    assert len(BROKER_API_KEYS) == 77
    assert list(API_KEYS) == sorted(API_KEYS)
    assert set(range(93)) - set(API_KEYS) == {4, 5, 6, 7}
    controller_only = set(API_KEYS) - set(BROKER_API_KEYS)
    assert controller_only == {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}


def test_every_declared_message_is_walked() -> None:
    assert len(SENT) == 2 * 89 + 2
    assert len({cls for cls, _ in MESSAGES_AND_VERSIONS}) == 267
    assert len(MESSAGES_AND_VERSIONS) == 723


@pytest.mark.parametrize("key", API_KEYS, ids=API_NAMES.values())
def test_an_api_has_one_range_of_versions_everywhere(key: int) -> None:
    known = api(key)
    assert known.key == key == known.request.API_KEY == known.response.API_KEY
    assert known.request.__name__ == f"{known.name}Request"
    assert known.response.__name__ == f"{known.name}Response"
    assert known.request.VERSIONS == known.response.VERSIONS
    declared = range(known.request.VERSIONS.first, known.request.VERSIONS.last + 1)
    listed = [version for version in declared if (key, version) not in UNSTABLE]
    assert listed == list(range(known.min_version, known.max_version + 1))
    for version in listed:
        assert is_flexible(key, version) == (version in known.request.FLEXIBLE)
        assert is_flexible(key, version) == (version in known.response.FLEXIBLE)
    assert VERSION_BOUNDS[key][:2] == (known.min_version, known.max_version)
    assert api(key) is known


def test_there_is_no_api_of_an_unknown_key() -> None:
    with pytest.raises(KeyError):
        api(4)

"""The pytest fixture `klamm_broker`, there as soon as klamm is installed.

Pytest loads this module in every run, so it imports nothing before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from klamm.broker.testing import RunningBroker


@pytest.fixture
def klamm_broker() -> Iterator[RunningBroker]:
    """A broker for one test; see klamm.broker.testing."""
    from klamm.broker.testing import running_broker

    with running_broker() as broker:
        yield broker

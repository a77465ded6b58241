"""Full collections stay short, and set nothing apart without need."""

from __future__ import annotations

import gc

import pytest

from klamm.broker import garbage
from klamm.broker.garbage import short_collections


class Kept:
    """An object that the collector has to walk over."""


def test_what_makes_a_collection_long_is_set_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "FULL_COLLECTION_S_MAX", 0.0)
    kept = [Kept() for _ in range(1000)]
    with short_collections():
        gc.collect(1)
        assert any(each is kept[0] for each in gc.get_objects())
        gc.collect()
    assert not any(each is kept[0] for each in gc.get_objects())


def test_a_short_collection_sets_nothing_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "FULL_COLLECTION_S_MAX", 60.0)
    kept = Kept()
    with short_collections():
        gc.collect()
    assert any(each is kept for each in gc.get_objects())


def test_it_ends_with_the_block() -> None:
    before = list(gc.callbacks)
    with short_collections():
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before

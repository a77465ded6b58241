"""Full collections stay short, and set nothing apart without need."""

from __future__ import annotations

import gc

import pytest

from klamm.broker import garbage
from klamm.broker.garbage import no_collections, short_collections


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


def test_what_is_imported_is_set_apart_and_never_looked_at() -> None:
    collections = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal collections
        collections += 1

    gc.callbacks.append(count)
    try:
        with no_collections():
            kept = [Kept() for _ in range(10_000)]
        seen = collections
        assert not any(each is kept[0] for each in gc.get_objects())
        assert gc.isenabled()
    finally:
        gc.callbacks.remove(count)
        gc.unfreeze()
    assert seen == 0


def test_it_ends_with_the_block() -> None:
    before = list(gc.callbacks)
    with short_collections():
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before


def test_full_collections_come_before_there_is_much_to_look_at() -> None:
    thresholds = gc.get_threshold()
    full = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal full
        full += phase == "stop" and info["generation"] == 2

    with short_collections():
        gc.collect()
        gc.freeze()
        gc.collect()
        gc.callbacks.append(count)
        kept: list[list[int]] = [[] for _ in range(30_000)]
        gc.callbacks.remove(count)
    gc.unfreeze()
    assert len(kept) == 30_000
    assert full >= 1
    assert gc.get_threshold() == thresholds

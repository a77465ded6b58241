"""The leader epochs of a log: who wrote what, and where two logs part."""

import pytest

from klamm.log.leader_epochs import EpochEntry, LeaderEpochCache


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    return LeaderEpochCache(EpochEntry(*entry) for entry in entries)


EPOCHS = ((2, 10), (4, 20), (5, 30))


@pytest.mark.parametrize(
    ("epoch", "offset", "entries", "is_news"),
    [
        (5, 30, EPOCHS, False),
        (5, 35, EPOCHS, False),
        (6, 40, (*EPOCHS, (6, 40)), True),
        (6, 30, ((2, 10), (4, 20), (6, 30)), True),
        (6, 15, ((2, 10), (6, 15)), True),
        (4, 40, ((2, 10), (4, 40)), True),
        (1, 50, ((1, 50),), True),
        (5, 25, ((2, 10), (4, 20), (5, 25)), True),
    ],
)
def test_assign(
    epoch: int, offset: int, entries: tuple[tuple[int, int], ...], is_news: bool
) -> None:
    epochs = cache(*EPOCHS)
    assert epochs.assign(epoch, offset) == is_news
    assert epochs.entries == entries
    assert epochs.latest_epoch == entries[-1][0]


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 10)),
        (2, (2, 20)),
        (3, (2, 20)),
        (4, (4, 30)),
        (5, (5, 44)),
        (6, (-1, -1)),
    ],
)
def test_end_offset_for(epoch: int, answer: tuple[int, int]) -> None:
    assert cache(*EPOCHS).end_offset_for(epoch, 44) == answer


def test_end_offset_without_epochs() -> None:
    assert cache().end_offset_for(0, 44) == (-1, -1)
    assert cache().latest_epoch is None


@pytest.mark.parametrize(
    ("offset", "epoch"), [(9, None), (10, 2), (19, 2), (20, 4), (29, 4), (30, 5), (99, 5)]
)
def test_epoch_for_offset(offset: int, epoch: int | None) -> None:
    assert cache(*EPOCHS).epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(("offset", "left"), [(31, 3), (30, 2), (21, 2), (20, 1), (10, 0), (0, 0)])
def test_truncate_from_end(offset: int, left: int) -> None:
    epochs = cache(*EPOCHS)
    assert epochs.truncate_from_end(offset) == (left < 3)
    assert epochs.entries == EPOCHS[:left]


@pytest.mark.parametrize(
    ("offset", "entries"),
    [
        (0, EPOCHS),
        (10, EPOCHS),
        (11, ((2, 11), (4, 20), (5, 30))),
        (20, ((4, 20), (5, 30))),
        (25, ((4, 25), (5, 30))),
        (99, ((5, 99),)),
    ],
)
def test_truncate_from_start(offset: int, entries: tuple[tuple[int, int], ...]) -> None:
    epochs = cache(*EPOCHS)
    assert epochs.truncate_from_start(offset) == (entries != EPOCHS)
    assert epochs.entries == entries


def test_clear() -> None:
    epochs = cache(*EPOCHS)
    epochs.clear()
    assert epochs.entries == ()

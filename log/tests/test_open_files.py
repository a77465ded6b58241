"""Who still sees a file that is being closed."""

from __future__ import annotations

from typing import Any

from klamm.log.memory_fs import MemoryFileSystem
from klamm.log.open_files import FileSlot, OpenFiles


class Closing:
    """Notes what its slot holds while it is being closed, as another thread could look then."""

    def __init__(self, slot: FileSlot, seen: list[object]) -> None:
        self._slot = slot
        self._seen = seen

    def __del__(self) -> None:
        self._seen.append(self._slot.file)


def test_a_slot_has_forgotten_a_file_before_it_closes() -> None:
    """Threads share slots at a shutdown: one that gets a closed file could not sync it."""
    slot = OpenFiles(MemoryFileSystem(), 1).slot("/a")
    seen: list[object] = []
    closing: Any = Closing(slot, seen)
    slot.file = closing
    del closing
    slot.close()
    assert seen == [None]


def test_a_slot_has_forgotten_a_file_before_another_takes_its_place() -> None:
    fs = MemoryFileSystem()
    pool = OpenFiles(fs, 1)
    slot, other = pool.slot("/a"), pool.slot("/b")
    slot.get(create=True)
    seen: list[object] = []
    closing: Any = Closing(slot, seen)
    slot.file = closing
    del closing
    slot.used = False
    other.get(create=True)
    assert seen == [None]
    assert slot.file is None

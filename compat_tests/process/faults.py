"""Disks that fail, without a hook in klamm: the calls of the operating system are replaced.

Python imports `sitecustomize` before anything else, from the first folder on its path that has
one. Ours stands before klamm's calls and does what a bad disk does while a file of the right name
exists.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from compat_tests.process.watched import WatchedKlamm

# A failed sync drops what was not synced, as Linux may do with dirty pages, and the next sync of
# the same file says that all is well.
_FAILING_SYNC = """
    import errno, os

    SWITCH = {switch!r}
    real_fdatasync, real_fsync = os.fdatasync, os.fsync
    synced_sizes = {{}}

    def is_to_fail():
        try:
            os.unlink(SWITCH)
        except FileNotFoundError:
            return False
        return True

    def fdatasync(fd):
        inode = os.fstat(fd).st_ino
        if is_to_fail():
            os.ftruncate(fd, synced_sizes.get(inode, 0))
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        size = os.fstat(fd).st_size
        real_fdatasync(fd)
        synced_sizes[inode] = size

    def fsync(fd):
        if is_to_fail():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_fsync(fd)

    os.fdatasync, os.fsync = fdatasync, fsync
"""

# A full disk takes a part of a write, and refuses the next one.
_FULL_DISK = """
    import errno, os

    SWITCH = {switch!r}
    real_write, real_writev = os.write, os.writev

    def write(fd, data):
        if os.path.exists(SWITCH):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(fd, data)

    def writev(fd, chunks):
        if os.path.exists(SWITCH):
            return real_write(fd, memoryview(chunks[0])[: len(chunks[0]) // 2])
        return real_writev(fd, chunks)

    os.write, os.writev = write, writev
"""


class FaultyKlamm(WatchedKlamm):
    """klamm on a disk with a switch."""

    def __init__(
        self, data_dir: Path, fault: str, *, properties: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(data_dir, properties=properties)
        self._folder = data_dir.with_name(data_dir.name + "-fault")
        self._folder.mkdir(parents=True)
        self._switch = self._folder / "switch"
        code = textwrap.dedent(fault).format(switch=str(self._switch))
        (self._folder / "sitecustomize.py").write_text(code, encoding="utf-8")
        self.is_faulty = True

    def command(self) -> list[str]:
        if not self.is_faulty:
            return super().command()
        return ["env", f"PYTHONPATH={self._folder}", *super().command()]

    def switch_on(self) -> None:
        self._switch.touch()

    def switch_off(self) -> None:
        self._switch.unlink()

    @property
    def is_on(self) -> bool:
        return self._switch.exists()


def with_failing_sync(data_dir: Path, **settings: Mapping[str, str]) -> FaultyKlamm:
    """The first sync after `switch_on` fails, and switches off: a second attempt would succeed."""
    return FaultyKlamm(data_dir, _FAILING_SYNC, **settings)


def with_full_disk(data_dir: Path, **settings: Mapping[str, str]) -> FaultyKlamm:
    """No room from `switch_on` to `switch_off`."""
    return FaultyKlamm(data_dir, _FULL_DISK, **settings)

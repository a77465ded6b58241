"""Disks that fail, without a hook in klamm: the calls of the operating system are replaced.

Python imports `sitecustomize` before anything else, from the first folder on its path that has
one. Ours stands before klamm's calls and does what a bad disk does while a file of the right name
exists.
"""

from __future__ import annotations

import ctypes
import os
import platform
import textwrap
from pathlib import Path
from typing import Literal

from compat_tests.process.watched import WatchedKlamm

# A failed sync drops what was not synced, as Linux may do with dirty pages, and the next sync of
# the same file says that all is well.
_FAILING_SYNC = """
    import atexit, ctypes, errno, mmap, os, platform, struct

    SWITCH, BY = {switch!r}, {by!r}
    real_fdatasync, real_fsync = os.fdatasync, os.fsync
    synced_sizes = {{}}

    def is_to_fail():
        try:
            os.unlink(SWITCH)
        except FileNotFoundError:
            return False
        return True

    def drop_unsynced(fd):
        os.ftruncate(fd, synced_sizes.get(os.fstat(fd).st_ino, 0))

    def fdatasync(fd):
        if BY in ("threads", "itself") and is_to_fail():
            drop_unsynced(fd)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        status = os.fstat(fd)
        real_fdatasync(fd)
        synced_sizes[status.st_ino] = status.st_size

    def fsync(fd):
        if BY in ("threads", "itself") and is_to_fail():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_fsync(fd)

    os.fdatasync, os.fsync = fdatasync, fsync
    SUBMIT, GET_EVENTS = {{"x86_64": (209, 208), "aarch64": (2, 4)}}.get(
        platform.machine(), (None, None)
    )
    # Of struct iocb: data, and the descriptor; of struct io_event: data, and the result.
    ORDER, COMPLETION = struct.Struct("=Q12xI40x"), struct.Struct("=Q8xq8x")
    # Descriptor, inode and size of a file when its sync was ordered.
    ordered = {{}}

    # With io_uring, orders and results lie in memory. Here the call waits for the results of its
    # orders, so that it can change one before klamm looks at it. Nobody sees when klamm does that:
    # what was not synced is dropped when the process ends.
    SETUP, ENTER, WAIT = 425, 426, 1
    BY_AIO = ("aio", "lost orders")
    real_mmap = mmap.mmap

    class Rings:
        def setup(self, call, count, parameters):
            fd = self.fd = call(SETUP, count, parameters)
            if fd >= 0:
                self.orders_max, self.results_max = struct.unpack_from("=2I", parameters)
                self.tail_at, = struct.unpack_from("=I", parameters, 44)
                self.tail_of_results_at, = struct.unpack_from("=I", parameters, 84)
                self.results_at, = struct.unpack_from("=I", parameters, 100)
            return fd

        def mapped(self, fd, size, **keywords):
            made = real_mmap(fd, size, **keywords)
            if fd >= 0 and fd == getattr(self, "fd", -1):
                name = "orders" if keywords["offset"] else "memory"
                setattr(self, name, made)
            return made

        def number(self, at):
            return struct.unpack_from("=I", self.memory, at)[0]

        def enter(self, call, fd, count, *arguments):
            first = self.number(self.tail_at) - count
            files = [
                struct.unpack_from("=i", self.orders, index % self.orders_max * 64 + 4)[0]
                for index in range(first, first + count)
            ]
            sizes = [(os.fstat(file).st_ino, os.fstat(file).st_size) for file in files]
            before = self.number(self.tail_of_results_at)
            assert call(ENTER, fd, count, count, WAIT, None, 0) == count
            if BY == "ring" and is_to_fail():
                size = synced_sizes.get(sizes[0][0], 0)
                atexit.register(os.ftruncate, os.dup(files[0]), size)
                place = self.results_at + before % self.results_max * 16 + 8
                struct.pack_into("=i", self.memory, place, -errno.EIO)
            else:
                synced_sizes.update(sizes)
            return count

    rings = Rings()
    mmap.mmap = rings.mapped

    class Syscall:
        def __init__(self, real):
            self.__dict__["real"] = real

        def __setattr__(self, name, value):
            setattr(self.real, name, value)

        def __call__(self, number, *arguments):
            if number == SETUP and BY in BY_AIO:
                return -1
            if number == SETUP:
                return rings.setup(self.real, *arguments)
            if number == ENTER:
                return rings.enter(self.real, *arguments)
            if number == SUBMIT:
                note_orders(*arguments)
            result = self.real(number, *arguments)
            return ended(result, arguments[3]) if number == GET_EVENTS else result

    def note_orders(context, count, orders):
        for address in orders[:count]:
            data, fd = ORDER.unpack(ctypes.string_at(address, ORDER.size))
            status = os.fstat(fd)
            ordered[data] = (fd, status.st_ino, status.st_size)

    def ended(count, completions):
        fails = count > 0 and is_to_fail()
        are_lost = fails and BY == "lost orders"
        for number in range(max(count, 0)):
            place = number * COMPLETION.size
            data, _ = COMPLETION.unpack_from(completions, place)
            fd, inode, size = ordered.pop(data)
            if are_lost or (fails and number == 0):
                drop_unsynced(fd)
                struct.pack_into("=q", completions, place + 16, -errno.EIO)
            else:
                synced_sizes[inode] = size
        return -1 if are_lost else count

    class Library(ctypes.PyDLL):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            return Syscall(found) if name == "syscall" else found

    if BY == "threads":
        # On a machine that it does not know, klamm syncs by the calls that are replaced above.
        platform.machine = lambda: "another"
    else:
        ctypes.PyDLL = Library
"""

# A full disk takes a part of a write, and refuses the next one. A file that is removed makes room.
_FULL_DISK = """
    import errno, os

    SWITCH = {switch!r}
    real_write, real_writev, real_remove = os.write, os.writev, os.remove
    room = 0

    def has_room(size):
        global room
        if not os.path.exists(SWITCH):
            room = 0
            return True
        if size > room:
            return False
        room -= size
        return True

    def write(fd, data):
        if not has_room(len(data)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(fd, data)

    def writev(fd, chunks):
        if not has_room(sum(map(len, chunks))):
            return real_write(fd, memoryview(chunks[0])[: len(chunks[0]) // 2])
        return real_writev(fd, chunks)

    def remove(path):
        global room
        size = os.stat(path).st_size
        real_remove(path)
        room += size

    os.write, os.writev, os.remove = write, writev, remove
"""


class FaultyKlamm(WatchedKlamm):
    """klamm on a disk with a switch."""

    def __init__(self, data_dir: Path, fault: str, **details: str) -> None:
        super().__init__(data_dir)
        self._folder = data_dir.with_name(data_dir.name + "-fault")
        self._folder.mkdir(parents=True)
        self._switch = self._folder / "switch"
        code = textwrap.dedent(fault).format(switch=str(self._switch), **details)
        (self._folder / "sitecustomize.py").write_text(code, encoding="utf-8")
        self.is_faulty = True

    def command(self) -> list[str]:
        if not self.is_faulty:
            return super().command()
        path = os.pathsep.join(filter(None, [str(self._folder), os.environ.get("PYTHONPATH")]))
        return ["env", f"PYTHONPATH={path}", *super().command()]

    def switch_on(self) -> None:
        self._switch.touch()

    def switch_off(self) -> None:
        self._switch.unlink()

    @property
    def is_on(self) -> bool:
        return self._switch.exists()


SyncedBy = Literal["threads", "ring", "aio", "lost orders", "itself"]


def with_failing_sync(data_dir: Path, by: SyncedBy) -> FaultyKlamm:
    """The first sync after `switch_on` fails, and switches off: a second attempt would succeed.

    Args:
        by: whose sync fails: that of threads, on a machine where the kernel takes no orders; that
            of the kernel by io_uring, or by io_submit where io_uring is forbidden, which tells the
            error with the end of an order, or fails to tell of its end; or that which the process
            does by itself, beside the orders.
    """
    return FaultyKlamm(data_dir, _FAILING_SYNC, by=by)


def kernel_has(by: SyncedBy) -> bool:
    """Whether klamm can sync that way here; a sandbox may forbid it, which is known by trying."""
    call = ctypes.CDLL(None).syscall
    if by == "ring":
        fd = call(425, 1, ctypes.create_string_buffer(120))
        if fd >= 0:
            os.close(fd)
        return bool(fd >= 0 and platform.machine() == "x86_64")
    if by not in ("aio", "lost orders"):
        return True
    setup, destroy = {"x86_64": (206, 207), "aarch64": (0, 1)}.get(platform.machine(), (-1, -1))
    context = ctypes.c_ulong()
    if call(setup, 1, ctypes.byref(context)) != 0:
        return False
    call(destroy, context)
    return True


def with_full_disk(data_dir: Path) -> FaultyKlamm:
    """No room from `switch_on` to `switch_off`."""
    return FaultyKlamm(data_dir, _FULL_DISK)

"""CRC-32C, the checksum of record batches and of producer snapshots.

A C implementation (with the processor's own instruction where there is one) is a hard dependency:
in pure Python the checksum of one megabyte takes longer than everything else that is done to it.
The input is read in place, so a memoryview of a received frame is never copied.
"""

from collections.abc import Callable

from crc32c import crc32c as _crc32c

__all__ = ["crc32c"]

# crc32c(data, value=0): the CRC-32C of data, continuing from the checksum of what came before it.
crc32c: Callable[..., int] = _crc32c

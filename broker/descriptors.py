"""How the logs and the connections share the descriptors that the process may have.

A log that can't open its file can't be served, so a part of them is kept from the connections:
many peers must not be able to take a log offline.
"""

from __future__ import annotations

import resource

from klamm.log.environment import OPEN_FILES_MAX

# Listeners, epolls, temporary files, directories being synced, files that are sent while their
# place in the pool has been given to another.
SPARE = 32


def descriptors_max() -> int:
    """How many the process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> None:
    """Take what the system allows: the limit that shells give by default is a small one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def log_files_max(limit: int) -> int:
    """How many files of logs may be open at a time."""
    return max(1, min(OPEN_FILES_MAX, limit // 4))


def connections_end(limit: int) -> int:
    """The number of the first descriptor that no connection may have."""
    return limit - log_files_max(limit) - SPARE

"""The log directories, as the admin APIs name them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from klamm.log.errors import LogError
from klamm.wire.errors import ErrorCode

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.log.manager import LogManager


def log_directories(broker: Broker) -> dict[str, LogManager | None]:
    """All of them by their absolute paths, under which clients name them; None when offline."""
    online = {directory.root: directory for directory in broker.logs.online}
    return {os.path.abspath(root): online.get(root) for root in broker.logs.roots}


def find_directory(broker: Broker, path: str) -> LogManager:
    """Raises LogError LOG_DIR_NOT_FOUND or KAFKA_STORAGE_ERROR."""
    directories = log_directories(broker)
    if path not in directories:
        raise LogError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is none of log.dirs")
    directory = directories[path]
    if directory is None:
        raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is offline")
    return directory

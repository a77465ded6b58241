"""The directory of the logs, as the admin APIs name it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klamm.broker.broker import Broker


def log_directory(broker: Broker) -> str:
    """Its absolute path, under which a client may name it again."""
    return os.path.abspath(broker.logs.root)

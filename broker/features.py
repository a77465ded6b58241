"""Features (KIP-584): versions of behaviour that the whole cluster has agreed on.

Listed only when klamm does what the level promises; clients change their behaviour on it.
"""

from __future__ import annotations

# The metadata records that klamm writes are those of Apache Kafka 4.3.
METADATA_VERSION = "metadata.version"
METADATA_VERSION_LEVEL = 30

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (METADATA_VERSION_LEVEL, METADATA_VERSION_LEVEL),
}

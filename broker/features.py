"""Features (KIP-584): versions of behaviour that the whole cluster has agreed on.

Listed only when klamm does what the level promises; clients change their behaviour on it.
"""

from __future__ import annotations

# The metadata records that klamm writes are those of Apache Kafka 4.3.
METADATA_VERSION = "metadata.version"
METADATA_VERSION_LEVEL = 30

# Consumer groups (KIP-848): clients that are told to use them look for level 1.
GROUP_VERSION = "group.version"
GROUP_VERSION_LEVEL = 1

# Transactions (KIP-890): at level 2 every end of a transaction brings a new epoch, and producers
# need not say beforehand where they will write.
TRANSACTION_VERSION = "transaction.version"
TRANSACTION_VERSION_LEVEL = 2

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    GROUP_VERSION: (0, GROUP_VERSION_LEVEL),
    METADATA_VERSION: (METADATA_VERSION_LEVEL, METADATA_VERSION_LEVEL),
    TRANSACTION_VERSION: (0, TRANSACTION_VERSION_LEVEL),
}

# What a cluster of klamm has agreed on. There is one node, so a new version of it need not wait for
# others: a data directory of before gets the features that it lacks when it is started.
FINALIZED_FEATURES: dict[str, int] = {
    GROUP_VERSION: GROUP_VERSION_LEVEL,
    METADATA_VERSION: METADATA_VERSION_LEVEL,
    TRANSACTION_VERSION: TRANSACTION_VERSION_LEVEL,
}

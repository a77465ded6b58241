"""Which partition of a coordinator's topic a group id or a transactional id belongs to."""

from __future__ import annotations

from functools import lru_cache

from klamm.coordinator.java_strings import hash_code

_INT_MIN = -(2**31)
# Keys that are asked for again and again; longer ones would take more memory than they are worth.
KEYS_KEPT = 4096
KEPT_LENGTH_MAX = 256


def partition_for(key: str, partition_count: int) -> int:
    """The partition of a key: Java's hash of it, without the sign, modulo the count.

    A data directory outlives its broker, so this has to be Kafka's rule: it says in which partition
    on disk the offsets of a group are.
    """
    if len(key) > KEPT_LENGTH_MAX:
        return _partition_for(key, partition_count)
    return _kept_partition_for(key, partition_count)


def _partition_for(key: str, partition_count: int) -> int:
    hashed = hash_code(key)
    # The absolute value of this one does not fit in 32 bits; Kafka takes 0 for it.
    return 0 if hashed == _INT_MIN else abs(hashed) % partition_count


_kept_partition_for = lru_cache(KEYS_KEPT)(_partition_for)

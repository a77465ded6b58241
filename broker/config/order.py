"""The order in which Kafka lists settings: that of a Java HashMap.

No client may rely on it, but tools print what they get, and two brokers with the same settings are
easier to compare when they list them alike.
"""

from collections.abc import Iterable

_CAPACITY_MIN = 16


def hash_map_order(names: Iterable[str]) -> list[str]:
    """Returns names as a HashMap that they were put into one after the other lists them.

    It goes through its buckets, and through each bucket in the order in which it was filled. The
    number of buckets doubles whenever more than three quarters as many names are in the map.
    """
    given = list(names)
    capacity = _CAPACITY_MIN
    while len(given) > capacity * 3 // 4:
        capacity *= 2
    return sorted(given, key=lambda name: _spread_hash(name) & (capacity - 1))


def _spread_hash(name: str) -> int:
    """String.hashCode over UTF-16 units, with its upper half mixed into the lower one."""
    encoded = name.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    return value ^ (value >> 16)

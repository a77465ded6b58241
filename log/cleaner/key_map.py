"""The keys in the dirty part of a log, and which of its records a later one supersedes.

Kafka keeps the last offset of each key and looks every record up again when it copies. Here the
record that a new one supersedes is marked while the keys are collected, so copying the dirty part
needs neither its keys nor this table again. A record of the clean part is superseded when its key
is in the table at all.

Kafka knows keys by their MD5. Here short keys stand for themselves, so they can't collide, and long
ones are represented by a digest that nobody can find collisions for, of a length that no short key
has.
"""

from collections.abc import Sequence
from hashlib import blake2b

# Keys of this size and more are replaced by a digest of this size.
DIGEST_BYTES = 24
# What a key takes at most: itself 64, a number 32, and its share of a dictionary that has just
# grown.
ENTRY_BYTES = 160

# The state of a record in the dirty part, one byte each.
SUPERSEDED = 1
TOMBSTONE = 2

Key = bytes | None


def digest(key: bytes) -> bytes:
    """Return what stands for a long key."""
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


class KeyMap:
    """The dirty part as far as it was read.

    The memory that it takes is bounded by bytes_max, and may exceed it by one batch: a batch that
    is larger than the map would otherwise never be compacted.

    Args:
        bytes_max: log.cleaner.dedupe.buffer.size.
        load_factor: the share of it that may be used (log.cleaner.io.buffer.load.factor).
        first_offset: where the dirty part begins.

    Attributes:
        last_offset: the dirty part was read up to here.
        numbers: key → number of the last record that has it, counted from the first dirty batch.
        states: of the records, by their numbers.
        keyless: how many records without a key there are.
    """

    def __init__(self, bytes_max: int, load_factor: float, first_offset: int) -> None:
        self._bytes_max = int(bytes_max * load_factor)
        self.first_offset = first_offset
        self.last_offset = first_offset - 1
        self.numbers: dict[Key, int] = {}
        self.states = bytearray()
        self.keyless = 0

    def __len__(self) -> int:
        return len(self.numbers)

    def has_room(self, count: int) -> bool:
        """Say whether that many more records fit, with as many new keys."""
        records = len(self.states) + count
        keys = len(self.numbers) + count
        return not self.states or keys * ENTRY_BYTES + records <= self._bytes_max

    def put(self, keys: Sequence[Key], tombstones: Sequence[int]) -> None:
        """Note the records of a batch, in the order of the log.

        Args:
            tombstones: indexes of the records without a value.
        """
        states, numbers = self.states, self.numbers
        first = number = len(states)
        states += bytes(len(keys))
        number_of = numbers.get
        for key in keys:
            earlier = number_of(key)
            if earlier is not None:
                states[earlier] |= SUPERSEDED
            numbers[key] = number
            number += 1
        # Records without a key have superseded each other; the last of them goes, too.
        keyless = numbers.pop(None, None)
        if keyless is not None:
            states[keyless] |= SUPERSEDED
            self.keyless += keys.count(None)
        for index in tombstones:
            states[first + index] |= TOMBSTONE

    def put_aborted(self, count: int) -> None:
        """Note the records of a batch of an aborted transaction, none of which stays."""
        self.states += bytes([SUPERSEDED]) * count

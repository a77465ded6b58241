"""Who wrote the bytes that are being appended, which decides how far they are trusted."""

import enum


class AppendOrigin(enum.Enum):
    """Kafka's origins, with the checks that each of them takes.

    CLIENT is checked in full. COORDINATOR (offset commits, transaction markers) carries no
    sequence numbers, so only epochs are checked. REPLICATION and RAFT_LEADER bring what a leader
    has accepted already: offsets are kept, and fencing rules do not apply again.
    """

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()
    REPLICATION = enum.auto()
    RAFT_LEADER = enum.auto()

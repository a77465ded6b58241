"""Offset commits of one sweep, stored together: one append and one batch instead of one for each.

A commit is decided when it comes, and stored at the end of the sweep at the latest. Nobody sees the
time in between: a shard stores what is gathered before anything else looks at its groups (see
`GroupShard.coordinator`), and replies leave only when their records are durable.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from klamm.broker.replies import Pending
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.offset_commits import OffsetCommit
from klamm.wire.messages.offset_commit import OffsetCommitResponse

if TYPE_CHECKING:
    from klamm.broker.groups.shard import GroupShard

# The batch of so many offsets is built in about five milliseconds.
RECORDS_AT_ONCE_MAX = 500

PendingCommit = tuple[OffsetCommit, Pending[OffsetCommitResponse]]


class GatheredCommits:
    """The commits that a shard has accepted and not stored yet."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self._gathered: list[PendingCommit] = []
        self._records = 0

    def __len__(self) -> int:
        return len(self._gathered)

    def add(self, commit: OffsetCommit) -> Pending[OffsetCommitResponse]:
        pending: Pending[OffsetCommitResponse] = Pending()
        self._gathered.append((commit, pending))
        self._records += len(commit.records)
        if self._records > RECORDS_AT_ONCE_MAX:
            self.store()
        return pending

    def store(self) -> None:
        """Append all of them; each is answered once it is durable, or refused."""
        gathered, self._gathered = self._gathered, []
        self._records = 0
        self._store(gathered)

    def _store(self, commits: list[PendingCommit]) -> None:
        shard = self._shard
        try:
            shard.append([record for commit, _ in commits for record in commit.records])
        except CoordinatorError as error:
            if len(commits) > 1:
                # Together they may be too large: each gets the answer that it would get alone.
                for each in commits:
                    self._store([each])
            else:
                commit, pending = commits[0]
                pending.complete(commit.response(error.code))
        except Exception as error:
            for _, pending in commits:
                pending.fail(error)
        else:
            for commit, pending in commits:
                shard.when_durable(partial(pending.complete, commit.response()))

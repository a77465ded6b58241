"""Partitions that move to another log directory: one after the other, while they are served.

What a move does is in `log/future.py`; here is when, and what the metadata says of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from klamm.broker.steps import StepRunner
from klamm.log.directories import PASSING
from klamm.log.errors import LogError, StorageError
from klamm.log.future import FutureLog
from klamm.wire.messages.stored.metadata import PartitionChangeRecord

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.partition import Partition
    from klamm.log.manager import LogManager

logger = logging.getLogger(__name__)

# A full disk may have room again.
RETRY_S = 1.0


class DirectoryMoves:
    """The moves of a broker that have not ended."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self._broker = broker
        self._nursery = nursery
        # Its own threads: a long copy must not keep requests waiting for theirs.
        self._steps = StepRunner(nursery)
        self._moves: dict[Partition, FutureLog] = {}
        self._wanted = trio.Event()

    def start(self) -> None:
        """Begin again what an earlier run has not finished."""
        broker = self._broker
        for directory in broker.logs.online:
            try:
                unfinished = directory.take_unfinished()
            except OSError as error:
                logger.error("unfinished copies in %s can't be removed: %s", directory.root, error)
                continue
            for topic, index in unfinished:
                partition = broker.partitions.get(topic, index)
                if partition is not None and partition.log.root != directory.root:
                    self._begin_again(partition, directory)
        self._nursery.start_soon(self._run)

    def _begin_again(self, partition: Partition, target: LogManager) -> None:
        try:
            self.begin(partition, target)
        except (LogError, StorageError, OSError) as error:
            logger.error("%s-%d does not move: %s", partition.topic, partition.index, error)

    def get(self, partition: Partition) -> FutureLog | None:
        return self._moves.get(partition)

    def begin(self, partition: Partition, target: LogManager) -> None:
        """Have a partition moved.

        Raises:
            LogError: KAFKA_STORAGE_ERROR, its log can't be read.
            OSError: the copy can't be made.
        """
        assert partition not in self._moves
        now_ms = self._broker.clock.now_ms
        self._moves[partition] = FutureLog(partition.log, target, now_ms)
        self._wanted.set()

    def cancel(self, partition: Partition) -> None:
        """Leave a partition where it is."""
        move = self._moves.pop(partition, None)
        if move is None:
            return
        try:
            move.drop()
        except OSError as error:
            # The next start removes it.
            logger.error("%s can't be removed: %s", move.directory, error)
        self._broker.remove_deleted_soon()
        self._nursery.start_soon(self._assign, partition)

    def on_deleted(self) -> None:
        """Partitions were deleted."""
        for partition in [one for one in self._moves if one.deleted]:
            self.cancel(partition)

    def on_directory_failed(self, directory: LogManager) -> None:
        """Nothing moves to a directory that is offline, nor from it."""
        for partition, move in list(self._moves.items()):
            if directory.root in (move.target.root, move.source.root):
                self.cancel(partition)

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            while self._moves:
                await self._try(next(iter(self._moves)))

    async def _try(self, partition: Partition) -> None:
        move = self._moves[partition]
        try:
            await self._move(partition, move)
        except (LogError, StorageError, OSError) as error:
            if not move.is_cancelled:
                logger.error("%s-%d does not move: %s", partition.topic, partition.index, error)
                await self._on_failed(partition, move, error)
        else:
            logger.info("%s-%d is in %s now", partition.topic, partition.index, move.target.root)

    async def _on_failed(self, partition: Partition, move: FutureLog, error: Exception) -> None:
        if move.target.has(partition.topic, partition.index):
            # The next start would take it for the log.
            self._broker.halt(f"{move.target.root} has a copy of a log that goes on elsewhere")
            return
        if isinstance(error, OSError) and error.errno in PASSING:
            # Others first: they may go elsewhere.
            self._moves[partition] = self._moves.pop(partition)
            await trio.sleep(RETRY_S)
            return
        if isinstance(error, OSError) and move.target.on_failed is not None:
            move.target.fail(error)
        self.cancel(partition)

    async def _move(self, partition: Partition, move: FutureLog) -> None:
        broker = self._broker
        await self._steps.run(move.catch_up())
        await self._assign(partition)
        log = await self._steps.run(move.finish())
        # Not a turn is given away between the end of the copy and this.
        source = broker.logs.holder_of(partition.log)
        partition.move_to(log)
        del self._moves[partition]
        self._nursery.start_soon(self._put_away, partition, source, move.target.root)

    async def _put_away(self, partition: Partition, source: LogManager, new_root: str) -> None:
        """Remove the old directory, once the new name is on disk."""
        broker = self._broker
        try:
            await trio.to_thread.run_sync(broker.logs.environment.fs.sync_directory, new_root)
        except OSError as error:
            broker.halt(f"sync of {new_root} failed: {error}")
            return
        try:
            source.delete_partition(partition.topic, partition.index)
        except OSError as error:
            # The next start sets it aside.
            logger.error("what has moved can't be removed: %s", error)
        broker.remove_deleted_soon()

    async def _assign(self, partition: Partition) -> None:
        """Let the metadata say where a partition will be, or is."""
        broker = self._broker
        async with broker.controller.lock:
            if partition.deleted or partition.is_offline:
                return
            move = self._moves.get(partition)
            directory = broker.logs.holder_of(partition.log) if move is None else move.target
            state = broker.metadata.image.topics_by_id[partition.topic_id].partitions[
                partition.index
            ]
            if state.directories != [directory.directory_id]:
                record = PartitionChangeRecord(
                    partition_id=partition.index,
                    topic_id=partition.topic_id,
                    directories=[directory.directory_id],
                )
                await broker.controller.commit([record])

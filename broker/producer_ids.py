"""Producer ids, handed out from blocks of 1,000.

A block is recorded in the metadata log before its first id is used, so that a crash loses ids but
never repeats one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.wire.messages.stored.metadata import ProducerIdsRecord

if TYPE_CHECKING:
    from klamm.broker.controller import Controller

BLOCK_SIZE = 1000


class ProducerIds:
    """The rest of the current block."""

    def __init__(self, controller: Controller, node_id: int) -> None:
        self._controller = controller
        self._node_id = node_id
        self._next = 0
        self._end = 0

    @property
    def is_empty(self) -> bool:
        """The current block is used up."""
        return self._next == self._end

    def next_nowait(self) -> int | None:
        """An id of the current block, or None when it is used up."""
        if self.is_empty:
            return None
        self._next += 1
        return self._next - 1

    async def next(self) -> int:
        while (producer_id := self.next_nowait()) is None:
            await self.refill()
        return producer_id

    async def refill(self) -> None:
        """Take a block, if the current one is used up."""
        async with self._controller.lock:
            if not self.is_empty:
                # Another request has taken a block meanwhile.
                return
            start = self._controller.image.next_producer_id
            record = ProducerIdsRecord(
                broker_id=self._node_id, broker_epoch=0, next_producer_id=start + BLOCK_SIZE
            )
            await self._controller.commit([record])
            self._next, self._end = start, start + BLOCK_SIZE

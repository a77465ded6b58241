"""A transactional producer that does one step at a time, and a reader of committed data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from klamm.broker.testing import RunningBroker
from klamm.broker.tests.raw_client import FETCH_VERSION, RawClient, fetch, produce
from klamm.broker.tests.waiting import until
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from klamm.wire.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from klamm.wire.messages.end_txn import EndTxnRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from klamm.wire.messages.produce import ProduceRequest
from klamm.wire.records.batch import RecordBatchHeader, read_batch_header
from klamm.wire.records.record import build_batch, iter_records

TRANSACTION = 1
READ_COMMITTED = 1
LATEST = -1


class Producer:
    """Speaks transactions of version 2."""

    def __init__(self, client: RawClient, transactional_id: str = "t", timeout_ms: int = 60_000):
        self.client = client
        self.id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self) -> None:
        """Find the coordinator and become known, once it is loaded and has ended what was open."""
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.id])
        assert self.client.call(find, 6).coordinators[0].error_code == ErrorCode.NONE
        until(lambda: self.ask_for_identity() is ErrorCode.NONE)

    def ask_for_identity(self) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        response = self.client.call(request, 5)
        if response.error_code == ErrorCode.NONE:
            self.become(response.producer_id, response.producer_epoch)
        return ErrorCode(response.error_code)

    def become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def writing(self, topic: str, value: bytes, partition: int = 0) -> ProduceRequest:
        sequence = self.sequences.get((topic, partition), 0)
        self.sequences[topic, partition] = sequence + 1
        # Of now: markers are, and a log with batches of years is rolled.
        records = build_batch(
            [(None, value, (), int(time.time() * 1000))],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = produce(topic, records, partition=partition)
        request.transactional_id = self.id
        return request

    def write(
        self, topic: str, value: bytes, partition: int = 0, *, version: int = 12
    ) -> ErrorCode:
        response = self.client.call(self.writing(topic, value, partition), version)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    def add(self, topic: str, *partitions: int) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        response = self.client.call(request, 3)
        (result,) = response.results_by_topic_v3_and_below
        return ErrorCode(result.results_by_partition[0].partition_error_code)

    def ending(self, *, commit: bool = True) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def end(self, *, commit: bool = True, version: int = 5) -> ErrorCode:
        response = self.client.call(self.ending(commit=commit), version)
        if version >= 5 and response.error_code == ErrorCode.NONE:
            self.become(response.producer_id, response.producer_epoch)
        return ErrorCode(response.error_code)

    def describe(self) -> TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[self.id])
        (state,) = self.client.call(request, 0).transaction_states
        assert isinstance(state, TransactionState)
        return state

    @property
    def state(self) -> str:
        return str(self.describe().transaction_state)

    def settle(self) -> None:
        until(lambda: not self.state.startswith("Prepare"))


def split_batches(data: bytes) -> Iterator[tuple[RecordBatchHeader, bytes]]:
    while data:
        header = read_batch_header(data)
        yield header, data[: header.size_in_bytes]
        data = data[header.size_in_bytes :]


def read_committed(client: RawClient, topic: str, partition: int = 0) -> list[bytes]:
    """The values that a consumer of committed data delivers, as it filters them."""
    request = fetch(topic, partitions=(partition,))
    request.isolation_level = READ_COMMITTED
    (held,) = client.call(request, FETCH_VERSION).responses[0].partitions
    assert held.error_code == ErrorCode.NONE
    aborted = [(one.first_offset, one.producer_id) for one in held.aborted_transactions]
    return _filter(bytes(held.records or b""), aborted)


def stored_committed(broker: RunningBroker, topic: str, partition: int = 0) -> list[bytes]:
    """The same from the log itself, where files are in memory and can't be sent."""
    log = broker.broker.partitions.find(topic, partition).log
    stable = log.last_stable_offset
    read = log.read(0, 1 << 20, upper_bound_offset=stable)
    aborted = [
        (one.first_offset, one.producer_id) for one in log.aborted_transactions(0, read.next_offset)
    ]
    return _filter(read.slice.read() if len(read) else b"", aborted)


def _filter(records: bytes, aborted: list[tuple[int, int]]) -> list[bytes]:
    aborted = sorted(aborted)
    dropped: set[int] = set()
    values = []
    for header, data in split_batches(records):
        while aborted and aborted[0][0] <= header.base_offset:
            dropped.add(aborted.pop(0)[1])
        if header.is_control:
            dropped.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in dropped:
            found = iter_records(data, decompressed_bytes_max=1 << 20)
            values += [record.value or b"" for record in found]
    return values


def latest_offset(client: RawClient, topic: str, *, committed: bool) -> int:
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed),
        topics=[ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    response: Any = client.call(request, 7)
    return int(response.topics[0].partitions[0].offset)

"""One broker: its parts, the order in which they start, and the order in which they stop.

Start: addresses bound · data directories locked · metadata replayed · logs opened and recovered ·
listening. Stop: no new connections and requests · what is under way ends · connections closed ·
logs closed and marked clean. A failed sync, or a broken invariant of the log, halts: nothing is
written or answered any more, and the next start recovers from what is on disk.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import trio

from klamm.broker.budget import MemoryBudget
from klamm.broker.clock import Clock
from klamm.broker.config import ConfigError, ServerConfig, validate_topic_configs
from klamm.broker.config import Listener as Address
from klamm.broker.connection import Connection
from klamm.broker.controller import Controller
from klamm.broker.descriptors import descriptors_max, log_files_max
from klamm.broker.directory_moves import DirectoryMoves
from klamm.broker.dispatch import Dispatcher
from klamm.broker.features import FINALIZED_FEATURES
from klamm.broker.fetch_session import FetchSessionCache
from klamm.broker.flusher import Flusher
from klamm.broker.groups.service import Groups
from klamm.broker.listener import Listener, bind
from klamm.broker.loading import METADATA_LOG_CONFIG, METADATA_TOPIC_ID, open_partitions
from klamm.broker.log_care import LogCare
from klamm.broker.metadata.admission import admit, check_place, refused
from klamm.broker.metadata.configs import with_stored
from klamm.broker.metadata.image import ResourceType
from klamm.broker.metadata.store import MetadataStore
from klamm.broker.metadata.topics import METADATA_TOPIC
from klamm.broker.partitions import Partitions
from klamm.broker.producer_ids import ProducerIds
from klamm.broker.reactor import Reactor
from klamm.broker.reserve import Reserve
from klamm.broker.steady_clock import SteadyClock
from klamm.broker.steps import StepRunner
from klamm.broker.timers import Timers
from klamm.broker.transactions.service import Transactions
from klamm.log.clean_shutdown import NO_BROKER_EPOCH
from klamm.log.directories import LogDirectories
from klamm.log.fs import DISK_FULL, FileSystem, OsFileSystem
from klamm.log.manager import LogManager
from klamm.log.meta_properties import MetaProperties
from klamm.wire.messages.stored.metadata import ConfigRecord, FeatureLevelRecord
from klamm.wire.schema import Message

logger = logging.getLogger(__name__)

# What is under way when a shutdown begins gets this long to end.
SHUTDOWN_GRACE_S = 10.0
UNBOUNDED = 1 << 62


class BrokerHaltedError(Exception):
    """The broker stopped on the spot, because going on could have broken a promise."""


class Broker:
    """A running broker; `serve` is its life.

    Args:
        config: what it was told.
        fs: where its files are.
        clock: wall time.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        fs: FileSystem | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or Clock()
        self.node_id = config.node_id
        self.partitions = Partitions()
        self.fetch_sessions = FetchSessionCache(config.max_incremental_fetch_session_cache_slots)
        bytes_max = config.queued_max_request_bytes
        self.budget = MemoryBudget(bytes_max if bytes_max > 0 else UNBOUNDED)
        self.listeners: list[Listener] = []
        self._fs = fs or OsFileSystem()
        self._halted: str | None = None
        self._stop = trio.Event()

    # --- life ---

    def bind(self) -> list[tuple[Address, socket.socket]]:
        """Take the addresses, before anything is touched.

        Raises:
            OSError: one of them can't be used.
        """
        bound: list[tuple[Address, socket.socket]] = []
        with ExitStack() as undo:
            for address in self.config.listeners:
                sock = bind(address.host, address.port)
                undo.callback(sock.close)
                bound.append((address, sock))
            undo.pop_all()
        return bound

    async def serve(
        self,
        bound: Sequence[tuple[Address, socket.socket]],
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Run until `stop` is called.

        Args:
            bound: what `bind` returned.
            on_ready: called once connections are accepted.

        Raises:
            StorageError: the data directory is in use, damaged or of another kind.
            OSError: the data directory can't be used.
            BrokerHaltedError: a sync failed, or the log is not what it must be.
        """
        with ExitStack() as cleanup:
            for _, sock in bound:
                cleanup.callback(sock.close)
            self.logs = LogDirectories.open(
                self._fs,
                self.config.log_dirs,
                metadata_root=self.config.metadata_log_dir,
                node_id=self.node_id,
                producer_id_expiration_ms=self.config.producer_id_expiration_ms,
                admit=self._admit,
            )
            self.logs.environment.files.open_files_max = log_files_max(descriptors_max())
            # Whatever goes wrong from here on, nothing is written any more on the way out.
            cleanup.callback(self.logs.abandon)
            self._load()
            await self._run(bound, on_ready)
            if self._halted is not None:
                raise BrokerHaltedError(self._halted)
            try:
                await trio.to_thread.run_sync(
                    self.logs.close, self.config.klamm_worker_threads, self._broker_epoch()
                )
            except OSError as error:
                # The directory is not marked clean: the next start recovers.
                reason = f"the logs can't be closed: {error}"
                logger.critical("halting: %s", reason)
                raise BrokerHaltedError(reason) from error

    def _admit(self, _: MetaProperties) -> None:
        """Read the metadata, before anything in the directory is touched.

        Raises:
            InconsistentDirectoryError: klamm can't go on with it.
        """
        root = self.config.metadata_log_dir
        self.metadata = MetadataStore(self._fs, root)
        others = [other for other in self.config.log_dirs if other != root]
        check_place(self._fs, self.metadata, root, others)
        admit(self.metadata, root, self.node_id)
        image = self.metadata.image
        what = "the broker's settings"
        try:
            self._apply_dynamic_configs()
            for topic in image.configured(ResourceType.TOPIC):
                what = f"topic {topic}"
                validate_topic_configs(image.topic_configs(topic), self.config)
        except ConfigError as error:
            raise refused(root, f"{what}: {error}") from None

    def _load(self) -> None:
        now_ms = self.clock.now_ms()
        log = self.logs.metadata.open_partition(
            METADATA_TOPIC, 0, METADATA_TOPIC_ID, METADATA_LOG_CONFIG, now_ms
        )
        self.metadata.check_end(log)
        # Nothing is refused any more for what the metadata is.
        self.logs.begin()
        self.cluster_id = self.logs.cluster_id
        self.reserve = Reserve(self._fs, self.logs.metadata.root)
        self.reserve.fill()
        self.metadata.lead(log, self.node_id, self.logs.metadata.directory_id, now_ms)
        if self.metadata.is_new:
            self.metadata.append_and_replay(self._first_records(), now_ms)
        missing = self._missing_features()
        if missing:
            self.metadata.append_and_replay(missing, now_ms)
        self._apply_dynamic_configs()
        self.logs.producer_id_expiration_ms = self.config.producer_id_expiration_ms
        # Asked for in every Metadata request.
        self._advertised = {address.name: address for address in self.config.advertised_listeners}
        self.controller = Controller(self)
        self.producer_ids = ProducerIds(self.controller, self.node_id)
        open_partitions(self)
        log.flush()

    def _apply_dynamic_configs(self) -> None:
        """Raises ConfigError when klamm can't do what is stored."""
        self.config = with_stored(self.config, self.metadata.image)

    def _first_records(self) -> list[Message]:
        """What a cluster begins with.

        Since Kafka 4.1 a new cluster fixes min.insync.replicas for all its brokers (KIP-966), so
        that they agree on what is committed; later changes in a file do not touch it.
        """
        return [
            *self.metadata.bootstrap,
            *self._missing_features(),
            ConfigRecord(
                resource_type=ResourceType.BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(self.config.log_defaults.min_insync_replicas),
            ),
        ]

    def _missing_features(self) -> list[Message]:
        """What the cluster has not agreed on yet: all features at first, later those that a new
        version of klamm brings. Where Kafka's tools have decided on them, nothing is missing."""
        if self.metadata.is_formatted:
            return []
        return [
            FeatureLevelRecord(name=name, feature_level=level)
            for name, level in FINALIZED_FEATURES.items()
            if name not in self.metadata.image.features
        ]

    def _broker_epoch(self) -> int:
        """That of the last registration, if an Apache Kafka has used this directory."""
        registration = self.metadata.image.brokers.get(self.node_id)
        return NO_BROKER_EPOCH if registration is None else registration.broker_epoch

    async def _run(
        self, bound: Sequence[tuple[Address, socket.socket]], on_ready: Callable[[], None]
    ) -> None:
        self.timers = Timers()
        self.reactor = Reactor()
        self.flusher = Flusher(
            self.reactor, self.timers, self.config.klamm_worker_threads, self._on_sync_failed
        )
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.steps = StepRunner(nursery)
                self.dispatcher = Dispatcher(self, nursery)
                self.groups = Groups(self, nursery)
                self.transactions = Transactions(self, nursery)
                self.log_care = LogCare(self, nursery)
                self.moves = DirectoryMoves(self, nursery)
                token = trio.lowlevel.current_trio_token()
                self.logs.on_failed = lambda directory: token.run_sync_soon(
                    self._on_directory_failed, directory
                )
                self.listeners = [Listener(address.name, sock, self) for address, sock in bound]
                nursery.start_soon(self.timers.run)
                nursery.start_soon(self.reactor.run)
                nursery.start_soon(self._checkpoint_regularly)
                nursery.start_soon(self._expire_producers)
                for listener in self.listeners:
                    nursery.start_soon(listener.watch)
                self.remove_deleted_soon()
                self.groups.start()
                self.transactions.start()
                self.log_care.start()
                self.moves.start()
                on_ready()
                await self._stop.wait()
                await self._end_what_is_under_way()
                nursery.cancel_scope.cancel()
        finally:
            for listener in self.listeners:
                listener.close()
            self.flusher.close()
            self.reactor.close()

    def stop(self) -> None:
        """Begin a clean shutdown; `serve` returns when it is done."""
        self._stop.set()

    async def _end_what_is_under_way(self) -> None:
        self.log_care.stop()
        for listener in self.listeners:
            listener.stop_accepting()
            for connection in listener.connections:
                connection.hold()
        with trio.move_on_after(SHUTDOWN_GRACE_S):
            # Polled: two kinds of work, once in a broker's life.
            while not self.flusher.is_idle or self.dispatcher.tasks:  # noqa: ASYNC110
                await trio.sleep(0.002)

    @property
    def is_halted(self) -> bool:
        return self._halted is not None

    def halt(self, reason: str) -> None:
        """Stop at once, without writing or answering anything any more."""
        if self._halted is None:
            logger.critical("halting: %s", reason)
            self._halted = reason
            # First of all: what is under way in this very step must not be answered either.
            for listener in self.listeners:
                listener.close()
            self.log_care.stop()
            self._nursery.cancel_scope.cancel()

    def _on_sync_failed(self, reason: str) -> None:
        """Halt; the next start has to expect that any part of what was not synced is gone."""
        self.halt(reason)
        self.logs.forget_boot()

    def _on_directory_failed(self, directory: LogManager) -> None:
        """A log directory is offline until the next start: so are the partitions in it."""
        if not self.logs.online:
            self.halt("no log directory is left")
            return
        lost = [one for one in self.partitions if directory.get(one.topic, one.index) is one.log]
        self.moves.on_directory_failed(directory)
        for partition in lost:
            self.partitions.take_offline(partition)
            self.groups.on_partition_offline(partition)
            self.transactions.on_partition_offline(partition)
        self._nursery.start_soon(self.controller.resign, lost)

    # --- what runs in the background ---

    async def _checkpoint_regularly(self) -> None:
        interval_s = self.config.replica_high_watermark_checkpoint_interval_ms / 1000
        while True:
            await trio.sleep(interval_s)
            try:
                await trio.to_thread.run_sync(self.logs.checkpoint_writer())
            except OSError as error:
                if error.errno not in DISK_FULL:
                    self.halt(f"the checkpoints can't be written: {error}")
                    return
                # The old ones stay in force, so the next start reads more than it would have to.
                logger.warning("the checkpoints can't be written: %s", error)

    async def _expire_producers(self) -> None:
        interval_s = self.config.producer_id_expiration_check_interval_ms / 1000
        # When the wall clock is set ahead, nobody has been idle for longer.
        clock = SteadyClock(self.clock)
        while True:
            await trio.sleep(interval_s)
            for partition in list(self.partitions):
                partition.log.producers.remove_expired(clock.now_ms())
                await trio.lowlevel.checkpoint()

    def remove_deleted_soon(self) -> None:
        """Remove the files of deleted partitions in a thread."""
        self._nursery.start_soon(self._remove_deleted)

    async def _remove_deleted(self) -> None:
        try:
            await trio.to_thread.run_sync(self.logs.remove_deleted)
            await trio.to_thread.run_sync(self.reserve.fill)
        except OSError as error:
            # They are out of the way under another name; the next start tries again.
            logger.error("files of deleted partitions can't be removed: %s", error)

    # --- what handlers ask ---

    def now(self) -> float:
        return trio.current_time()

    def advertised_address(self, connection: Connection) -> tuple[str, int]:
        """Where a client that came through this listener finds the broker again."""
        host, port = connection.local_address
        return self.address_for_clients(connection.listener_name, host, port)

    def address_for_clients(self, listener_name: str, host: str, port: int) -> tuple[str, int]:
        """What clients of a listener are told, when it has this address."""
        address = self._advertised.get(listener_name)
        if address is None:
            return host, port
        return address.host or socket.gethostname(), address.port or port

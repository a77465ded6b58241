"""A broker inside a test: in a thread, on a free port, ready in milliseconds.

    with running_broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

Several can run in one process. `broker.fail`, `broker.delay` and `broker.drop` make chosen requests
go wrong, to see how a client copes. Tests that run under pytest just ask for the fixture
`klamm_broker` (pytest_plugin.py).
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from klamm.broker.broker import Broker, BrokerHaltedError
from klamm.broker.config import ConfigError, load
from klamm.broker.config.listeners import host_and_port
from klamm.broker.config.values import value_text
from klamm.broker.interception import Action, Interception, Interceptors
from klamm.broker.loop_probe import LoopProbe
from klamm.wire.errors import ErrorCode
from klamm.wire.registry import API_NAMES

if TYPE_CHECKING:
    from klamm.broker.config.validators import ConfigValue
    from klamm.log.fs import FileSystem
    from klamm.wire.header import RequestHeader

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
# A week of requests: hooks that are set "for good" count down from here.
ALWAYS = 1 << 40
# Where a broker is found that listens on every address of the machine.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}

Matches = Callable[["RequestHeader", Any], bool]


class RunningBroker:
    """A broker in a thread of this process.

    Args:
        data_dir: its data directory, kept; without one a temporary directory is used and removed.
        properties: Kafka's property names and values, as text or as what they are (3, True).
            `log.dirs` names several directories.
        fs: where its files are, for a disk that fails; the real one when not given.

    Attributes:
        bootstrap: the address for clients, `127.0.0.1:<port>` unless `listeners` has another.
        probe: how long the event loop was held up since clients can connect; see loop_probe.py.

    Raises:
        ConfigError: a property has no value.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        properties: Mapping[str, ConfigValue] | None = None,
        *,
        fs: FileSystem | None = None,
    ) -> None:
        self._properties = _texts(properties or {})
        self._temporary = tempfile.mkdtemp(prefix="klamm-") if data_dir is None else None
        self.data_dir = Path(data_dir or self._temporary or "")
        self._properties.setdefault("listeners", "PLAINTEXT://127.0.0.1:0")
        self._properties.setdefault("log.dirs", str(self.data_dir))
        self._fs = fs
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        # Those of every broker that runs here: a restart does not lose them.
        self._hooks = Interceptors()
        self.probe = LoopProbe()
        self.host = "127.0.0.1"
        self.port = 0

    @property
    def bootstrap(self) -> str:
        return host_and_port(self.host, self.port)

    # --- life ---

    def start(self) -> RunningBroker:
        """Return when clients can connect.

        Raises:
            ConfigError, OSError, StorageError: as `klamm serve` would report them.
        """
        assert self._thread is None, "already started"
        self.broker = Broker(load(None, self._properties), fs=self._fs)
        bound = self.broker.bind()
        host, self.port = bound[0][1].getsockname()[:2]
        self.host = LOOPBACK.get(host, host)
        # A restart keeps the ports, as clients expect of a broker.
        self._properties["listeners"] = ",".join(
            str(address._replace(port=sock.getsockname()[1])) for address, sock in bound
        )
        self._ready.clear()
        self._failure = None

        def run() -> None:
            try:
                trio.run(self._serve, bound, instruments=[self.probe])
            except BaseException as error:
                self._failure = error
            finally:
                self._ready.set()

        self._thread = threading.Thread(target=run, name=f"klamm-{self.port}", daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_TIMEOUT_S):
            raise TimeoutError("the broker is not ready in time")
        failure: BaseException | None = self._failure
        if failure is not None:
            self._join()
        return self

    async def _serve(self, bound: Any) -> None:
        self._token = trio.lowlevel.current_trio_token()
        await self.broker.serve(bound, self._is_ready)

    def _is_ready(self) -> None:
        # No request was handled yet: this is the step in which the broker began to listen.
        self.broker.dispatcher.interceptors = self._hooks
        # Recovery may take as long as it needs: nobody is served yet.
        self.probe.reset()
        self._ready.set()

    def stop(self) -> None:
        """Shut down cleanly.

        Raises:
            BrokerHaltedError: it has halted before.
            Exception: what a `matches` of a hook has raised.
        """
        if self._thread is not None:
            self._call(self.broker.stop)
            self._join()
        failure, self._hooks.failure = self._hooks.failure, None
        if failure is not None:
            raise failure

    def kill(self) -> None:
        """Stop as if the process were killed: nothing is written or answered any more."""
        if self._thread is not None:
            self._call(lambda: self.broker.halt("killed by the test"))
            with suppress(BrokerHaltedError):
                self._join()

    def restart(self) -> None:
        """Stop cleanly and start again, on the same directory and port."""
        self.stop()
        self.start()

    def _join(self) -> None:
        thread, self._thread = self._thread, None
        assert thread is not None
        thread.join(STOP_TIMEOUT_S)
        if thread.is_alive():
            raise TimeoutError("the broker does not stop in time")
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Stop, and remove the data directory if it is a temporary one."""
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def _call(self, function: Callable[[], None]) -> bool:
        """Run something in the broker's own thread; False when there is none."""
        if self._token is None:
            return False
        try:
            trio.from_thread.run_sync(function, trio_token=self._token)
        except trio.RunFinishedError:
            return False
        return True

    # --- hooks: also for a broker that does not run, and kept when it starts again ---

    def fail(
        self,
        api: str,
        error: ErrorCode | int,
        *,
        times: int = ALWAYS,
        matches: Matches | None = None,
    ) -> None:
        """Answer requests of an API with an error, instead of handling them.

        Args:
            api: Kafka's name of the API, such as "Produce".
            error: what everything in the request is refused with.
            times: how many requests; all of them when not given.
            matches: picks requests by (header, request); all of them when not given. What it
                raises, `stop` raises; the request is handled then.

        Raises:
            ValueError: there is no such API or error, or `times` is below 1.
        """
        self._intercept(api, Action(error=ErrorCode(error)), times, matches)

    def delay(
        self, api: str, seconds: float, *, times: int = ALWAYS, matches: Matches | None = None
    ) -> None:
        """Handle requests of an API later; what follows on the same connection waits, too."""
        self._intercept(api, Action(delay_s=seconds), times, matches)

    def drop(self, api: str, *, times: int = ALWAYS, matches: Matches | None = None) -> None:
        """Close the connection instead of answering; the request is not handled."""
        self._intercept(api, Action(), times, matches)

    def clear_hooks(self) -> None:
        self._change_hooks(self._hooks.clear)

    def _intercept(self, api: str, action: Action, times: int, matches: Matches | None) -> None:
        keys = {name: key for key, name in API_NAMES.items()}
        if api not in keys:
            raise ValueError(f"{api!r} is no API; Kafka's names are {', '.join(sorted(keys))}")
        if times < 1:
            raise ValueError(f"times={times} is no number of requests; it is at least 1")
        hook = Interception(keys[api], action, times, matches or _matches_all)
        self._change_hooks(lambda: self._hooks.add(hook))

    def _change_hooks(self, change: Callable[[], None]) -> None:
        if not self._call(change):
            # Nobody else looks at them.
            change()


def _texts(properties: Mapping[str, ConfigValue]) -> dict[str, str]:
    """The properties as a file has them."""
    texts: dict[str, str] = {}
    for name, value in properties.items():
        text = value_text(value)
        if text is None:
            raise ConfigError(f"{name} has no value; give one or leave it out")
        texts[name] = text
    return texts


def _matches_all(header: RequestHeader, request: Any) -> bool:
    return True


@contextmanager
def running_broker(
    data_dir: str | Path | None = None,
    properties: Mapping[str, ConfigValue] | None = None,
    *,
    fs: FileSystem | None = None,
) -> Iterator[RunningBroker]:
    """A broker for a with block; see RunningBroker."""
    running = RunningBroker(data_dir, properties, fs=fs)
    try:
        yield running.start()
    finally:
        running.close()

"""`klamm serve`, `klamm check`, `klamm dump`: options, signals, exit codes.

Exit codes of all: 2 for something that the caller can put right (an option, a property, an address,
a directory), said in one line. Of `serve`: 0 after a clean shutdown · 70 when the broker halted to
keep its promises (a sync failed) · 1 for anything else. Of the others: see broker/commands/.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, NoReturn

from klamm.broker.commands.options import add_file_commands
from klamm.broker.commands.usage import ReaderLeftError, UsageError, flush_lines

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

EXIT_USAGE = 2
EXIT_HALTED = 70
# As a shell reports the end by a signal.
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE

logger = logging.getLogger("klamm")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        if options.command == "serve":
            return _serve(options)
        return _read_files(options)
    except UsageError as problem:
        print(f"klamm: {problem}", file=sys.stderr)
        return EXIT_USAGE


def _read_files(options: argparse.Namespace) -> int:
    """Run a command that reads files and prints lines, for as long as somebody reads them."""
    from klamm.broker.commands import check, dump

    run = {"check": check.run, "dump": dump.run}[options.command]
    try:
        code = run(options)
        flush_lines()
    except ReaderLeftError:
        # Python would try to write the rest when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all other problems are said."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"klamm: {message}; see {self.prog} --help\n")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="klamm", description="A Kafka-wire-compatible log broker.")
    parser.add_argument("--version", action="version", version=f"klamm {version('klamm')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run a broker until SIGTERM or Ctrl-C")
    serve.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where clients connect; port 0 picks a free one (default 127.0.0.1:9092)",
    )
    serve.add_argument(
        "--data-dir", metavar="DIR", help="where the logs are kept (default /tmp/klamm-logs)"
    )
    serve.add_argument(
        "--config", metavar="FILE", help="a server.properties file with Kafka's own names"
    )
    serve.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one property; wins over the file, may be repeated",
    )
    serve.add_argument("--verbose", action="store_true", help="log more")
    add_file_commands(commands)
    return parser.parse_args(arguments)


def _properties(options: argparse.Namespace) -> dict[str, str]:
    properties = {}
    for setting in options.set:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {setting!r} is not KEY=VALUE")
        properties[name.strip()] = value
    if options.listen is not None:
        properties["listeners"] = f"PLAINTEXT://{options.listen}"
    if options.data_dir is not None:
        properties["log.dirs"] = options.data_dir
    return properties


def _serve(options: argparse.Namespace) -> int:
    # Imported here, so that `--help` and a wrong option answer at once.
    import trio

    from klamm.broker.broker import Broker, BrokerHaltedError
    from klamm.broker.config import ConfigError, load
    from klamm.broker.descriptors import raise_limit
    from klamm.broker.garbage import set_apart, short_collections
    from klamm.log.errors import (
        DirectoryLockedError,
        InconsistentDirectoryError,
        StorageError,
    )

    _log_to_standard_error(verbose=options.verbose)
    try:
        config = load(options.config, _properties(options))
    except ConfigError as error:
        raise UsageError(str(error)) from None
    raise_limit()
    broker = Broker(config)
    try:
        bound = broker.bind()
    except OSError as error:
        names = ", ".join(f"{address.host}:{address.port}" for address in config.listeners)
        raise UsageError(
            f"cannot listen on {names}: {error.strerror or error}; choose another --listen"
        ) from None

    def announce() -> None:
        # What is there now stays; see garbage.py.
        set_apart()
        first = broker.listeners[0]
        print(f"klamm listening on {first.host}:{first.port}", flush=True)
        for listener in broker.listeners[1:]:
            logger.info("also listening on %s:%d (%s)", listener.host, listener.port, listener.name)
        logger.info(
            "data in %s: %d topics, %d partitions",
            ", ".join(broker.logs.roots),
            len(broker.metadata.image.topics),
            broker.metadata.image.partition_count,
        )

    async def run() -> None:
        failure: Exception | None = None
        # Before anything else: whoever has read the line with the address may send a signal.
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_stop_on_signal, broker, signals)
                try:
                    await broker.serve(bound, announce)
                except (BrokerHaltedError, StorageError, OSError) as error:
                    failure = error
                nursery.cancel_scope.cancel()
        if failure is not None:
            # Raised here, it does not come in a group of exceptions.
            raise failure

    directory = config.metadata_log_dir
    try:
        with short_collections():
            trio.run(run)
    except BrokerHaltedError:
        return EXIT_HALTED
    except (ConfigError, DirectoryLockedError, InconsistentDirectoryError) as error:
        raise UsageError(str(error)) from None
    except StorageError as error:
        print(f"klamm: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if broker.listeners:
            raise
        raise UsageError(
            f"cannot use the data directory {directory}: {error.strerror or error}; "
            "choose another --data-dir"
        ) from None
    logger.info("stopped")
    return 0


async def _stop_on_signal(broker: Broker, signals: AsyncIterator[int]) -> None:
    async for number in signals:
        logger.info("%s: shutting down", signal.Signals(number).name)
        broker.stop()


def _log_to_standard_error(*, verbose: bool) -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )


if __name__ == "__main__":
    sys.exit(main())

"""`klamm serve`, `klamm check`, `klamm dump`: options, signals, exit codes.

Exit codes of all: 2 for something that the caller can put right (an option, a property, an address,
a directory, also a damaged one), said in one line. Of `serve`: 0 after a clean shutdown · 70 when
the broker halted to keep its promises (a sync failed) · 1 for anything else. Of the others: see
broker/commands/.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

from klamm.broker.commands.options import add_file_commands
from klamm.broker.commands.serve_options import add_serve_command, given_properties
from klamm.broker.commands.usage import ReaderLeftError, UsageError, flush_lines

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.config import ServerConfig

EXIT_USAGE = 2
EXIT_HALTED = 70
# As a shell reports the end by a signal.
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE

logger = logging.getLogger("klamm")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        if options.command == "serve":
            return _serve(options)
        return _read_files(options)
    except UsageError as problem:
        print(f"klamm: {problem}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        # Before `serve` takes signals, or in the middle of a file.
        return EXIT_INTERRUPTED


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
    return code


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all other problems are said. An option is known by its
    whole name: what a part of one stands for would change with the next option."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"klamm: {message}; see {self.prog} --help\n")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line.

    Raises:
        SystemExit: They can't be used, which is said, or ask for help or for the version.
    """
    parser = _Parser(prog="klamm", description="A Kafka-wire-compatible log broker.")
    parser.add_argument("--version", action="version", version=described_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    parser.epilog = "klamm COMMAND --help lists the options of a command."
    add_serve_command(commands)
    add_file_commands(commands)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        # Told by the parser of the command, whose help lists what it knows.
        whose = commands.choices.get(options.command, parser)
        whose.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.exit(EXIT_USAGE, parser.format_help())
    return options


def described_version() -> str:
    """Which klamm this is, and whether setup.py could compile its modules."""
    found = find_spec("klamm.wire.codec")
    is_compiled = found is not None and str(found.origin).endswith(tuple(EXTENSION_SUFFIXES))
    return f"klamm {version('klamm')} ({'compiled' if is_compiled else 'pure Python'})"


def _serve(options: argparse.Namespace) -> int:
    # Imported here, so that `--help` and a wrong option answer at once.
    from klamm.broker.garbage import no_collections, set_apart, short_collections

    with no_collections():
        import trio

        from klamm.broker.broker import Broker, BrokerHaltedError
        from klamm.broker.commands.start_lines import announce
        from klamm.broker.config import ConfigError, from_properties, read_file
        from klamm.broker.descriptors import raise_limit
        from klamm.log.errors import CorruptFileError, CorruptLogError, StorageError

    _log_to_standard_error(verbose=options.verbose)
    try:
        file = read_file(options.config)
        config = from_properties({**file, **given_properties(options, file)})
    except ConfigError as error:
        raise UsageError(str(error)) from None
    raise_limit()
    broker = Broker(config)
    try:
        bound = broker.bind()
    except OSError as error:
        raise UsageError(_cannot_listen(options, config, error)) from None

    def on_ready() -> None:
        # What is there now stays; see garbage.py.
        set_apart()
        announce(broker)

    async def run() -> None:
        failure: Exception | None = None
        # Before anything else: whoever has read the line with the address may send a signal.
        with trio.open_signal_receiver(*_ending_signals()) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_stop_on_signal, broker, signals)
                try:
                    await broker.serve(bound, on_ready)
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
    except (CorruptFileError, CorruptLogError) as error:
        every = " ".join(dict.fromkeys([config.metadata_log_dir, *config.log_dirs]))
        raise UsageError(f"{error}; klamm check {every} names all that is damaged") from None
    except (ConfigError, StorageError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        if broker.listeners:
            raise
        raise UsageError(
            f"cannot use the data directory {directory}: {error.strerror or error}; "
            "choose another --data-dir"
        ) from None
    logger.info("stopped")
    return 0


def _cannot_listen(options: argparse.Namespace, config: ServerConfig, error: OSError) -> str:
    from klamm.broker.config.listeners import host_and_port

    names = ", ".join(host_and_port(address.host, address.port) for address in config.listeners)
    is_property = options.listen is None and "listeners" in config.given
    remedy = "change listeners" if is_property else "choose another --listen"
    return f"cannot listen on {names}: {error.strerror or error}; {remedy}"


def _ending_signals() -> list[signal.Signals]:
    """What ends the broker. SIGHUP is the end of its terminal, unless nohup says to go on."""
    signals = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


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

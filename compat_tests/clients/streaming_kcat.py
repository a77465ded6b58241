"""kcat as a producer and a consumer that live on while the broker is away."""

from __future__ import annotations

import itertools
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from compat_tests.clients.kcat import kcat_program
from compat_tests.clients.model import OUTAGE_TIMEOUT_MS, ProducerMode
from compat_tests.history.recorder import History

END_TIMEOUT_S = 60.0

# kcat reads its input in blocks of some thousand bytes, and sends and reports only between them:
# a long key before each value keeps it going.
FILLING = "-" * 1000

_DELIVERED = re.compile(r"% Message delivered to partition 0 \(offset (\d+)\)")


def stream(
    bootstrap: str,
    topic: str,
    history: History,
    mode: ProducerMode,
    prefix: str,
    pause_s: float,
    more: dict[str, Any],
    stopping: threading.Event,
) -> None:
    """Send counted values until stopped."""
    settings = {
        "acks": mode.acks,
        "enable.idempotence": str(mode.idempotence).lower(),
        "linger.ms": 2,
        # kcat names no value when it reports; without others under way they are in order.
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": OUTAGE_TIMEOUT_MS,
        **more,
    }
    told_more = ("-v", "-v")
    command = _command(bootstrap, topic, settings, "-P", *told_more, "-z", mode.codec, "-K", ":")
    with _running(command, subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        arguments = (history, prefix, process.stderr)
        reports = threading.Thread(target=_read_reports, args=arguments, daemon=True)
        reports.start()
        for number in itertools.count():
            if stopping.is_set():
                break
            history.add("invoke", f"{prefix}{number}")
            process.stdin.write(f"{FILLING}:{prefix}{number}\n")
            process.stdin.flush()
            time.sleep(pause_s)
        # The end of its input: kcat sends what is left, waits for it and ends.
        process.stdin.close()
        code = process.wait(END_TIMEOUT_S)
        reports.join(END_TIMEOUT_S)
        if code != 0:
            raise RuntimeError(f"kcat ended with code {code}")


def _read_reports(history: History, prefix: str, errors: IO[str]) -> None:
    number = 0
    for line in errors:
        delivered = _DELIVERED.match(line)
        if delivered is not None:
            history.add("ok", f"{prefix}{number}", int(delivered[1]))
            number += 1
        elif "Delivery failed" in line:
            history.add("unknown", f"{prefix}{number}")
            number += 1


def follow(
    bootstrap: str,
    topic: str,
    history: History,
    settings: dict[str, Any],
    stopping: threading.Event,
) -> None:
    """Read partition 0 from its beginning until stopped."""
    shown = ("-o", "0", "-q", "-u", "-f", "%o %s\\n")
    with _running(_command(bootstrap, topic, settings, "-C", *shown), None) as process:
        ending = threading.Thread(target=_end, args=(process, stopping), daemon=True)
        ending.start()
        assert process.stdout is not None
        for line in process.stdout:
            offset, _, value = line.rstrip("\n").partition(" ")
            history.add("poll", value, int(offset))
        if not stopping.is_set():
            raise RuntimeError(f"kcat ended with code {process.wait(END_TIMEOUT_S)}")


def _end(process: subprocess.Popen[str], stopping: threading.Event) -> None:
    stopping.wait()
    process.terminate()


def _command(bootstrap: str, topic: str, settings: dict[str, Any], *options: str) -> Sequence[str]:
    """kcat that goes on when the broker is away, and comes back soon after it."""
    quick = {"reconnect.backoff.max.ms": 500, **settings}
    given = [part for key, value in quick.items() for part in ("-X", f"{key}={value}")]
    return [kcat_program(), "-b", bootstrap, "-t", topic, "-p", "0", "-E", *options, *given]


@contextmanager
def _running(command: Sequence[str], stdin: int | None) -> Iterator[subprocess.Popen[str]]:
    """The process; none is left when the test ends, however it does."""
    process = subprocess.Popen(
        command,
        stdin=stdin if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if stdin is not None else subprocess.PIPE,
        stderr=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()

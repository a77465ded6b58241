"""A process that begins a transaction, and then waits to be killed.

    python -m compat_tests.transactions.hold LIBRARY BOOTSTRAP TRANSACTIONAL_ID TOPIC VALUE...

It prints a line when all its values are in the log.
"""

from __future__ import annotations

import signal
import sys

from compat_tests.transactions.libraries import library_named


def main(name: str, bootstrap: str, transactional_id: str, topic: str, *values: str) -> None:
    producer = library_named(name).open(bootstrap, transactional_id)
    producer.begin()
    for value in values:
        producer.send(topic, value)
    producer.flush()
    print("written", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])

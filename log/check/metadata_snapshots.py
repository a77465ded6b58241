"""Metadata records in a file that is there as a whole or not at all: a snapshot, the bootstrap."""

from collections.abc import Callable

from klamm.log.check.findings import Findings
from klamm.log.check.source import Reader
from klamm.log.check.walk import Damage, walk
from klamm.wire.errors import WireError
from klamm.wire.records.record import Record, iter_records


def check_metadata_snapshot(
    reader: Reader, findings: Findings, path: str, see: Callable[[Record], str | None] | None
) -> None:
    """Read every batch of the file.

    Args:
        see: says what is wrong with a record; None where nobody understands them.
    """
    file = reader.open(path)
    for found in walk(reader, file, file.size()):
        if isinstance(found, Damage):
            findings.fault(path, found.reason, position=found.position)
            continue
        if see is None or found.header.is_control:
            continue
        try:
            for record in iter_records(found.data):
                what = see(record)
                if what is not None:
                    findings.fault(path, what, offset=record.offset, position=found.position)
        except WireError as error:
            findings.fault(path, str(error), position=found.position)

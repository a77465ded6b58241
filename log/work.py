"""Work in turns: short steps where the log lives, long ones in a thread.

Retention, DeleteRecords and compaction change a log between its appends and reads, and they wait
for the disk or compute for long. Each is a generator. What stands between two of its yields runs in
the thread that owns the log and is short. What it yields is a function that touches no state of the
log: the caller runs it in a thread and sends the result back, or throws the exception that it
raised. A yield of None only asks to let others have their turn.

The log may have changed whenever such a generator goes on, so it looks again before it acts.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

Step = Callable[[], Any] | None
Work = Generator[Step, Any, ResultT]


def run_inline(work: Work[ResultT]) -> ResultT:
    """Run all of it here and now; for tests and tools."""
    try:
        step = next(work)
        while True:
            try:
                result = step() if step is not None else None
            except Exception as error:
                step = work.throw(error)
            else:
                step = work.send(result)
    except StopIteration as end:
        value: ResultT = end.value
        return value

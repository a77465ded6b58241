"""`python -m klamm.coordinator.diagrams PAGE > docs/PAGE.md`: states, drawn.

Rules and arrows come from the state tables. A test compares the pages with what this prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Set
from enum import Enum
from types import ModuleType
from typing import TypeVar

from klamm.coordinator.classic import state as classic
from klamm.coordinator.consumer import state as consumer
from klamm.coordinator.transaction import state as transaction

AnyState = TypeVar("AnyState", bound=Enum)

GROUPS_HEAD = """\
# The states of groups

Generated from `coordinator/classic/state.py` and `coordinator/consumer/state.py` by
`python -m klamm.coordinator.diagrams group-states > docs/group-states.md`; a test fails when this
page is not up to date.
"""

TRANSACTIONS_HEAD = """\
# The states of transactions

Generated from `coordinator/transaction/state.py` by
`python -m klamm.coordinator.diagrams transaction-states > docs/transaction-states.md`; a test fails
when this page is not up to date.
"""


def group_states() -> str:
    """Returns the whole page."""
    sections = (
        GROUPS_HEAD,
        "## Classic groups\n",
        _rules(classic),
        _diagram(classic.PREDECESSORS),
        "## Consumer groups\n",
        _rules(consumer),
        "A group:\n",
        _diagram(consumer.PREDECESSORS),
        "A member:\n",
        _diagram(consumer.MEMBER_PREDECESSORS),
    )
    return "\n".join(sections)


def transaction_states() -> str:
    """Returns the whole page."""
    return "\n".join((TRANSACTIONS_HEAD, _rules(transaction), _diagram(transaction.PREDECESSORS)))


PAGES: Mapping[str, Callable[[], str]] = {
    "group-states": group_states,
    "transaction-states": transaction_states,
}


def _rules(module: ModuleType) -> str:
    assert module.__doc__ is not None, f"{module.__name__} has no preface"
    return module.__doc__.strip() + "\n"


def _diagram(predecessors: Mapping[AnyState, Set[AnyState]]) -> str:
    """Draw a table; the first state is where everything begins."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {_name(next(iter(predecessors)))}"]
    lines += [
        f"    {_name(before)} --> {_name(after)}"
        for before in predecessors
        for after, allowed in predecessors.items()
        if before in allowed and before is not after
    ]
    return "\n".join([*lines, "```", ""])


def _name(state: Enum) -> str:
    """The name that clients see, or a number's name in the same form."""
    if isinstance(state.value, str):
        return state.value
    return "".join(word.capitalize() for word in state.name.split("_"))


if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())

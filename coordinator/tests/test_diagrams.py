"""The pages about states are what the tables say."""

from pathlib import Path

import pytest

from klamm.coordinator.classic import state as classic
from klamm.coordinator.consumer import state as consumer
from klamm.coordinator.diagrams import PAGES
from klamm.coordinator.transaction import state as transaction

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    """If it is not: python -m klamm.coordinator.diagrams NAME > docs/NAME.md"""
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == PAGES[name]()


def test_every_state_is_in_its_table() -> None:
    assert set(classic.PREDECESSORS) == set(classic.ClassicState)
    assert set(consumer.PREDECESSORS) == set(consumer.ConsumerGroupState)
    assert set(consumer.MEMBER_PREDECESSORS) == set(consumer.MemberState)
    assert set(transaction.PREDECESSORS) == set(transaction.TransactionState)


def test_every_state_of_a_transaction_has_its_number() -> None:
    """Kafka's, in the log."""
    numbers = [state.stored for state in transaction.TransactionState]
    assert numbers == list(range(len(transaction.TransactionState)))

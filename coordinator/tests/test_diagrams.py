"""The page about the states of groups is what the tables say."""

from pathlib import Path

from klamm.coordinator.classic import state as classic
from klamm.coordinator.consumer import state as consumer
from klamm.coordinator.diagrams import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "group-states.md"


def test_the_page_is_up_to_date() -> None:
    """If it is not: python -m klamm.coordinator.diagrams > docs/group-states.md"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_state_is_in_its_table() -> None:
    assert set(classic.PREDECESSORS) == set(classic.ClassicState)
    assert set(consumer.PREDECESSORS) == set(consumer.ConsumerGroupState)
    assert set(consumer.MEMBER_PREDECESSORS) == set(consumer.MemberState)

"""The documentation page is what the tables say."""

from pathlib import Path

from klamm.broker.config import tables
from klamm.broker.config.page import page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    """If it is not: python -m klamm.broker.config.page > docs/configuration.md"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_setting_is_on_the_page() -> None:
    text = page()
    for table in (
        tables.broker_definitions(),
        tables.topic_definitions(),
        tables.group_definitions(),
        tables.client_metrics_definitions(),
    ):
        assert [name for name in table if f"`{name}`" not in text] == []

"""The tables of the benchmarks: rows are chosen and reported by their names."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.__main__ import PRODUCERS_TABLE, SPARK_TABLE, STOCK_TABLE, Table
from benchmarks.brokers import KAFKA, KLAMM, Durability
from benchmarks.report import bound
from benchmarks.rows import all_rows

TABLES = (STOCK_TABLE, PRODUCERS_TABLE, SPARK_TABLE)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file_name)
def test_each_name_stands_for_one_row(table: Table) -> None:
    names = Counter(row.name for row in table.rows())
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file_name)
def test_no_target_has_become_easier(table: Table) -> None:
    for row in table.rows():
        if row.first_target is not None:
            assert row.target is not None, row.name
            if row.lower_is_better:
                assert row.target <= row.first_target, row.name
            else:
                assert row.target >= row.first_target, row.name


def test_commits_in_the_page_cache_are_compared_with_stock_kafka() -> None:
    (row,) = [
        row
        for row in all_rows()
        if row.name.startswith("offset-commit") and row.name.endswith("page cache")
    ]
    assert row.durability(KLAMM) is Durability.PAGE_CACHE
    assert row.durability(KAFKA) is Durability.STOCK
    assert bound(row, row.target) == "≥ 0.5"

"""docs/scaling.md says which keys and look-ups keep the records from being spread over servers by
account: exactly these.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Table, UniqueConstraint

from frontdesk.config import read_config
from frontdesk.db.schema import metadata
from tests.db.day import Installation
from tests.db.explained import Recorder, Scan
from tests.postgres import Databases

PAGE = (Path(__file__).parents[2] / "docs/scaling.md").read_text()
ACCOUNT = "account_id"
_TEXTS = re.compile(r"'(?:[^']|'')*'")  # a value in a condition, which may look like a column


def rows_under(title: str) -> list[list[str]]:
    """The cells of the table under a title of the page, without its head."""
    table = PAGE.partition(f"\n### {title}\n")[2].partition("\n#")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


SPREAD = set().union(*(words(cells[0]) for cells in rows_under("Spread by account")))
COPIED = set().union(*(words(cells[0]) for cells in rows_under("Copied or kept whole")))


def test_every_table_has_a_place() -> None:
    assert set(metadata.tables) == SPREAD | COPIED
    assert not SPREAD & COPIED


def test_the_keys_without_the_account_are_the_ones_that_the_page_names() -> None:
    found = {name: set(keys_without_account(metadata.tables[name])) for name in SPREAD}
    told = {name: words(cells[1]) for cells in rows_under("Keys") for name in words(cells[0])}
    assert {name: keys for name, keys in found.items() if keys} == told


def keys_without_account(table: Table) -> Iterator[str]:
    """The table's column itself if it is missing or may be null; unique and foreign keys to spread
    tables that lack it.
    """
    if ACCOUNT not in table.c or table.c[ACCOUNT].nullable:
        yield ACCOUNT
    unique = [tuple(table.primary_key.columns.keys())]
    unique += [
        tuple(key.columns.keys()) for key in table.constraints if isinstance(key, UniqueConstraint)
    ]
    unique += [tuple(index.columns.keys()) for index in table.indexes if index.unique]
    yield from (", ".join(columns) for columns in unique if ACCOUNT not in columns)
    for key in table.foreign_key_constraints:
        if key.referred_table.name in SPREAD and ACCOUNT not in key.column_keys:
            yield f"{', '.join(key.column_keys)} → {key.referred_table.name}"


def test_look_ups_without_the_account_are_named(
    postgres: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        plain = stack.enter_context(postgres.database())
        url = read_config({"FRONTDESK_DATABASE_URL": plain}).database_url
        one = Installation(url, stack, uniqueness="account")
        recorder = Recorder(one.db)
        with recorder.recording(monkeypatch, one.db, one.served):
            one.a_day()
    scans = [
        scan for explained in recorder.explained for scan in explained.scans if scan.table in SPREAD
    ]
    assert len(scans) > 50
    asked = [(scan.table, columns_of(scan)) for scan in scans]
    without = {
        f"{table}: {', '.join(sorted(columns)) or 'nothing'}"
        for table, columns in asked
        if ACCOUNT not in columns
    }
    rows = rows_under("Look-ups")
    told = {
        f"{table}: {key}" for cells in rows for table in words(cells[0]) for key in words(cells[1])
    }
    assert without == told


def columns_of(scan: Scan) -> set[str]:
    """The columns of the scanned table that its conditions name; those of another table stand after
    a dot.
    """
    conditions = _TEXTS.sub("", f"{scan.key} {scan.filter}")
    return set(re.findall(r"(?<![\w.])[a-z_]+(?![\w.])", conditions)) & set(
        metadata.tables[scan.table].c.keys()
    )

"""Statements over sets of rows, on both databases: what goes in comes out, and only the rows that
were meant are touched.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, UniqueConstraint
from sqlalchemy.exc import IntegrityError

from frontdesk.db import Database, Tx, sets
from frontdesk.db.schema import Id, IsoDate, Json
from frontdesk.eligibility.tables import members

things = Table(
    "set_test_things",
    MetaData(),
    Column("id", Id, primary_key=True),
    Column("scope", BigInteger, nullable=False),
    Column("name", String(255), nullable=True),
    Column("nickname", String(255), nullable=True),
    Column("day", IsoDate, nullable=True),
    Column("size", Integer, nullable=True),
    Column("notes", Json, nullable=True),
    UniqueConstraint("name", "scope"),
)
HOSTILE = ["'; DROP TABLE plans; --", '"', "\\", "%s", "?", ":name", "{}", "null", "", " ", "é",
           "\U0001f600", "a\tb", "\u2028"]  # fmt: skip


@pytest.fixture
def tx(owner: Database) -> Iterator[Tx]:
    """A transaction with a table of its own, which is gone with it."""
    with owner.engine.connect() as connection:
        if not owner.is_sqlite:  # for checks; the set statements use keys
            connection.exec_driver_sql("SET LOCAL enable_seqscan = on")
        things.create(connection)
        yield connection
        connection.rollback()


def thing(id_: int, **values: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("nickname", "day", "size", "notes"))
    return {"id": id_, "scope": 0, "name": f"n{id_}"} | empty | values


def stored(tx: Tx) -> list[dict[str, Any]]:
    return [dict(row) for row in tx.execute(things.select().order_by(things.c.id)).mappings()]


def test_a_set_is_stored_as_it_was_given(tx: Tx) -> None:
    rows = [
        thing(1, day="2026-02-28", size=-7, notes={"b": "1", "a": {"deep": [1, None, "é"]}}),
        thing(2, name=None, nickname="x" * 255, notes={}),
        thing(3, notes=[]),
        thing(2**53, scope=2**62),
    ]
    sets.insert_set(tx, things, rows)
    assert stored(tx) == rows
    assert sets.find_set(tx, things, "id", {2, 99}, columns=("name", "id")).rows == [
        {"name": None, "id": 2}
    ]
    # What a unique index holds is not inserted where that is asked for, and is an error where not.
    fresh = thing(4, notes={"a": 1})
    sets.insert_missing(tx, things, [thing(1, size=9), thing(5, name="n3"), fresh])
    with pytest.raises(IntegrityError), tx.begin_nested():
        sets.insert_set(tx, things, [thing(6), thing(7, name="n1")])
    assert stored(tx) == [*rows[:3], fresh, rows[3]]
    for change in (sets.insert_set, sets.insert_missing, sets.update_set):
        change(tx, things, [])  # is no statement
    assert sets.find_set(tx, things, "id", [], columns=("id",)).rows == []
    assert sets.lock_set(tx, things, {"name": []}, columns=("id",), within={"scope": 0}).rows == []
    assert sets.delete_set(tx, things, []) == 0


def test_no_text_is_taken_for_anything_but_text(tx: Tx) -> None:
    texts = dict(enumerate(HOSTILE))
    sets.insert_set(
        tx, things, [thing(n, name=text, notes={text: text}) for n, text in texts.items()]
    )
    assert stored(tx) == [thing(n, name=text, notes={text: text}) for n, text in texts.items()]
    for n, text in texts.items():
        assert sets.find_set(tx, things, "name", [text], columns=("id",)).rows == [{"id": n}]
    changes = [{"nickname": text, "notes": {"k": text}, "id": n} for n, text in texts.items()]
    sets.update_set(tx, things, changes)
    assert stored(tx) == [
        thing(n, name=text) | change
        for change, (n, text) in zip(changes, texts.items(), strict=True)
    ]


def test_rows_are_locked_once_by_any_key_inside_one_scope_in_the_order_of_their_ids(tx: Tx) -> None:
    rows = [thing(3, nickname="x"), thing(1, nickname="x"), thing(2)]
    sets.insert_set(tx, things, [*rows, thing(4, scope=7, name="n1", nickname="x")])
    keys = {"name": ["n2", "n1"], "nickname": ["x"]}
    found = sets.lock_set(tx, things, keys, columns=("id", "scope"), within={"scope": 0})
    assert found.rows == [{"id": 1, "scope": 0}, {"id": 2, "scope": 0}, {"id": 3, "scope": 0}]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_threads_that_take_ids_at_the_same_time_take_different_ones_that_ascend(
    db: Database,
) -> None:
    taken: list[int] = []

    def take() -> None:
        for _ in range(200):
            with db.write() as tx:
                fresh = sets.next_ids(tx, members, 400)
            assert fresh == sorted(fresh)
            taken.extend(fresh)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: take(), range(3)))
    finally:
        sys.setswitchinterval(interval)
    assert len(set(taken)) == len(taken) == 3 * 200 * 400

"""Transactions in a pipeline: two round trips, with the errors and losses of ordinary transactions."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, String, Table, select
from sqlalchemy.exc import IntegrityError

from frontdesk.config import read_config
from frontdesk.db import Database, open_database
from frontdesk.db.failures import unique_columns
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.db.schema import Id
from frontdesk.db.sets import find_set, insert_set, one_round_trip, update_set
from frontdesk.errors import Unavailable
from tests.postgres import Databases

words = Table(
    "words", MetaData(), Column("id", Id, primary_key=True), Column("word", String(20), unique=True)
)
CREATE = "CREATE TABLE words (id bigserial PRIMARY KEY, word varchar(20) CONSTRAINT uq_words_word UNIQUE)"


@pytest.fixture
def db(postgres: Databases) -> Iterator[Database]:
    """The table's database, the long way."""
    with (
        postgres.database() as url,
        closing(open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)) as db,
    ):
        with db.write() as tx:
            tx.exec_driver_sql(CREATE)
        yield db


def on_the_pipeline(db: Database, *works: Callable[[PipelineDatabase], Any]) -> list[Any]:
    """Each work's result, or the exception it ended with, one after the other on one
    `PipelineDatabase`.
    """

    async def run() -> list[Any]:
        results = []
        with closing(PipelineDatabase(db.url)) as wire:
            for work in works:
                try:
                    results.append(await run_in_event_loop(work, wire))
                except Exception as error:  # noqa: BLE001  # it is the result
                    results.append(error)
        return results

    return asyncio.run(run())


def insert(*rows: dict[str, Any]) -> Callable[[PipelineDatabase], None]:
    def work(db: PipelineDatabase) -> None:
        with db.write() as tx, one_round_trip(tx):
            insert_set(tx, words, rows)

    return work


def stored(db: Database) -> list[tuple[int, str]]:
    with db.read() as tx:
        return [(row.id, row.word) for row in tx.execute(select(words).order_by(words.c.id))]


def test_a_violation_names_its_constraint_and_undoes_the_whole(db: Database) -> None:
    def changing(word: str) -> Callable[[PipelineDatabase], None]:
        def work(wire: PipelineDatabase) -> None:
            with wire.write() as tx:
                with one_round_trip(tx):
                    update_set(tx, words, [{"id": 1, "word": "changed"}])
                with one_round_trip(tx):
                    insert_set(tx, words, [{"id": 3, "word": word}])
                if word == "c":
                    raise KeyError

        return work

    two = insert({"id": 1, "word": "a"}, {"id": 2, "word": "b"})
    works = (two, changing("b"), changing("c"), insert({"id": 4, "word": "d"}))
    first, violation, error, after = on_the_pipeline(db, *works)
    assert isinstance(violation, IntegrityError)
    assert unique_columns(violation) == "uq_words_word"
    assert (first, type(error), after) == (None, KeyError, None)
    assert stored(db) == [(1, "a"), (2, "b"), (4, "d")]


def test_a_dead_connection_is_told_as_stale_and_replaced(db: Database, postgres: Databases) -> None:
    def kill(_wire: PipelineDatabase) -> None:
        postgres.kill_backends(str(db.engine.url.database))

    def find(wire: PipelineDatabase) -> str:
        with wire.write() as tx:
            with one_round_trip(tx):
                found = find_set(tx, words, "id", [1], columns=["word"])
            return str(found.rows[0]["word"])

    _, _, lost, again = on_the_pipeline(db, insert({"id": 1, "word": "été"}), kill, find, find)
    assert isinstance(lost, Unavailable)
    assert (lost.stale_connection, lost.outcome_unknown, again) == (True, False, "été")

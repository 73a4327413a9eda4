"""Writing while others write the same rows: what is run again, how often, and who is told what."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from frontdesk.db import Database, Tx
from frontdesk.db.engine import (
    ATTEMPTS_ALONE,
    ATTEMPTS_TOGETHER,
    write_alone,
    write_in_one,
    write_together,
)
from frontdesk.errors import NotFound, Unavailable
from frontdesk.plans.tables import provider_groups
from tests.factories import NOW
from tests.postgres import Databases

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def group_names(db: Database) -> set[str]:
    return set(db.ask(lambda tx: tx.execute(provider_groups.select()).scalars(1).all()))


def add_group(tx: Tx, external_id: str) -> str:
    tx.execute(
        provider_groups.insert().values(name="Group", external_id=external_id, created_at=NOW)
    )
    return external_id


class Scripted:
    """Work that adds its items; `spoil(tx, items)` may end an attempt. `calls` are the sets it was
    given.
    """

    def __init__(self, spoil: Callable[[Tx, Sequence[str]], object]) -> None:
        self.calls: list[list[str]] = []
        self._spoil = spoil

    def __call__(self, tx: Tx, items: Sequence[str]) -> Sequence[str | Exception]:
        self.calls.append(list(items))
        added = [add_group(tx, item) for item in items]
        self._spoil(tx, items)
        return added


def lose_a_race(tx: Tx, _: Sequence[str] = ()) -> None:
    """A unique violation, as when somebody else has just inserted the same."""
    add_group(tx, "twice")
    add_group(tx, "twice")


def lose_together(tx: Tx, items: Sequence[str]) -> None:
    if len(items) > 1:
        lose_a_race(tx)


def refuse_bad(_: Tx, items: Sequence[str]) -> None:
    if "bad" in items:
        raise NotFound("part")


TOGETHER = ["a", "bad", "b"]


@pytest.mark.parametrize(
    ("spoil", "items", "answers", "calls"),
    [
        (lambda *_: None, TOGETHER, TOGETHER, [TOGETHER]),
        (
            lose_together,
            TOGETHER,
            TOGETHER,
            [TOGETHER] * ATTEMPTS_TOGETHER + [["a"], ["bad"], ["b"]],
        ),
        (refuse_bad, TOGETHER, ["a", NotFound, "b"], [TOGETHER, ["a"], ["bad"], ["b"]]),
        (refuse_bad, ["bad"], [NotFound], [["bad"]]),
        (lose_a_race, ["a"], [Unavailable], [["a"]] * (ATTEMPTS_TOGETHER + ATTEMPTS_ALONE)),
    ],
    ids=[
        "at once",
        "races settled item by item",
        "one bad item",
        "a bad item alone",
        "races without end",
    ],
)
def test_each_item_has_its_result_or_its_own_error(
    db: Database, spoil: Any, items: list[str], answers: list[Any], calls: list[list[str]]
) -> None:
    work = Scripted(spoil)
    found = write_together(db, items, work)
    assert [type(each) if isinstance(each, Exception) else each for each in found] == answers
    assert work.calls == calls
    assert group_names(db) == {each for each in answers if isinstance(each, str)}


def test_work_alone_that_fails_leaves_nothing(db: Database) -> None:
    with pytest.raises(NotFound):
        write_alone(db, lambda tx: refuse_bad(tx, [add_group(tx, "bad")]))
    assert write_alone(db, lambda tx: add_group(tx, "c")) == "c"
    assert group_names(db) == {"c"}


@pytest.mark.parametrize("unknown", [False, True])
def test_a_database_that_is_away_or_gives_no_answer_is_raised_for_all(
    db: Database, unknown: bool
) -> None:
    def be_away(*_: object) -> None:
        raise Unavailable("The database is away.", outcome_unknown=unknown)

    work = Scripted(be_away)
    with pytest.raises(Unavailable) as caught:
        write_together(db, ["a", "b"], work)
    assert (caught.value.outcome_unknown, len(work.calls)) == (unknown, 1)


def test_items_are_stored_together_with_the_error_of_a_bad_one(db: Database) -> None:
    begun: list[int] = []

    def spoil(tx: Tx, items: Sequence[str]) -> None:
        if "bad" in items:
            tx.execute(
                provider_groups.insert().values(name=None, external_id="bad", created_at=NOW)
            )
        lose_together(tx, items)

    def save(tx: Tx, results: Sequence[str | Exception]) -> None:
        add_group(
            tx, ",".join(each if isinstance(each, str) else type(each).__name__ for each in results)
        )

    write_in_one(db, TOGETHER, Scripted(spoil), save=save, begin=lambda: begun.append(1))
    assert group_names(db) == {"a", "b", "a,IntegrityError,b"}
    assert len(begun) == 2  # a row that is not valid is no race: the set is not run again


def test_races_of_a_set_in_one_transaction_are_settled_behind_savepoints(db: Database) -> None:
    work = Scripted(lambda tx, items: lose_a_race(tx) if items != ["a"] else None)
    saved: list[Sequence[str | Exception]] = []
    write_in_one(db, ["a", "b"], work, save=lambda _, results: saved.append(results))
    assert work.calls == [["a", "b"]] * ATTEMPTS_TOGETHER + [["a"]] + [["b"]] * ATTEMPTS_ALONE
    [[first, second]] = saved
    assert (first, type(second)) == ("a", Unavailable)
    assert group_names(db) == {"a"}


@ON_POSTGRESQL
def test_a_lost_connection_repeats_the_set_unless_it_was_committing(
    db: Database, postgres: Databases
) -> None:
    def die(tx: Tx, items: Sequence[str]) -> None:
        if len(work.calls) == 1 or items == ["b"]:
            postgres.kill_backends(str(db.engine.url.database))
        if items == ["a"] and len(work.calls) == 1:
            add_group(tx, "never")

    work = Scripted(die)
    assert write_together(db, ["a"], work) == ["a"]
    with pytest.raises(Unavailable) as caught:
        write_together(db, ["b"], work)
    assert caught.value.outcome_unknown
    assert work.calls == [["a"], ["a"], ["b"]]
    assert group_names(db) == {"a"}

"""A person can be forgotten: no value is left, and ids, times and the fact are."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import DBAPIError

from frontdesk.audit import AuditQuery, Requester, list_entries
from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.eligibility import find_members, list_history
from frontdesk.eligibility.tables import member_history, members
from frontdesk.errors import NotFound
from frontdesk.invitations import list_suppressions, suppress, unsuppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.privacy.classification import CLASSIFICATION
from frontdesk.privacy.erasure import erase_person, find_persons, get_person, place_hold, release_hold
from frontdesk.privacy.model import ColumnKind, FilesUnfinished, UnderLegalHold
from tests.cli.conftest import CommandLine
from tests.factories import make_customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.privacy.conftest import KEY, OLD, SOUGHT, TABLES_OF_PERSONS, VALUES, Life

KEEPING = {
    *("members.external_id", "members.first_name", "members.dob", "members.metadata", "members.email_folded"),
    *(
        "member_history.changes",
        "invitations.address",
        "invitations.address_folded",
        "suppressions.address_folded",
    ),
    *("file_rows.external_id", "caught_messages.recipient", "caught_messages.content"),
}


def test_every_column_is_classified_once() -> None:
    assert {table: set(metadata.tables[table].c.keys()) for table in metadata.tables} == {
        table: set(kinds) for table, kinds in CLASSIFICATION.items()
    }


def test_no_value_of_an_erased_person_is_left_in_any_column(life: Life) -> None:
    assert life.mentions() >= KEEPING
    # The columns that hold a value are those that the classification says.
    assert all(
        CLASSIFICATION[table][column] in (ColumnKind.PERSON, ColumnKind.PERSONS)
        for table, column in (place.split(".") for place in life.mentions())
    )
    [erased] = life.erase()
    assert (erased.member_id, erased.is_new) == (life.member_id, True)
    assert life.mentions() == set()
    [neighbour] = life.db.ask(lambda tx: find_members(tx, "AB 000005", None))
    assert (neighbour["first_name"], neighbour["email"]) == ("Neighbour", "robin.5@example.com")


def test_ids_times_and_the_fact_are_left(life: Life) -> None:
    before = life.db.ask(lambda tx: list_history(tx, life.member_id))
    life.erase()
    after = life.db.ask(lambda tx: list_history(tx, life.member_id))
    kept = {"plan_id", "effective_date", "expiry_date"}
    assert [entry._replace(changes={}) for entry in before] == [entry._replace(changes={}) for entry in after]
    assert [entry.changes for entry in after] == [
        {name: entry.changes[name] for name in entry.changes if name in kept} for entry in before
    ]
    with life.db.read() as tx:
        row = tx.execute(select(members).where(members.c.id == life.member_id)).mappings().one()
        assert (row["effective_date"], row["plan_id"]) == ("2026-01-01", life.customer.plan_ids[0])
    [entry] = life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member.erased")))
    assert (entry["subject_id"], entry["actor"]) == (life.member_id, "cli:test")


def test_the_address_is_still_never_mailed(life: Life) -> None:
    life.erase()
    body = {**VALUES, "gender": "female", "effective_date": "2026-01-01", "invite_immediately": True}
    again = life.api.post(life.path, body)
    assert again.headers["Invitation"] == "none; reason=suppressed"
    [kept] = life.db.ask(lambda tx: list_suppressions(tx, limit=10))
    assert kept.address.startswith("#")
    with life.db.write() as tx:
        assert not suppress(tx, VALUES["email"], SuppressionReason.BY_HAND, now=life.clock())
    life.erase()  # the new record: what is kept of the address stays
    assert life.api.post(life.path, body).headers["Invitation"] == "none; reason=suppressed"
    with life.db.write() as tx:
        assert unsuppress(tx, VALUES["email"])
        assert list_suppressions(tx, limit=10) == []


def test_the_same_identifier_makes_a_new_record_and_the_erased_one_stays_erased(life: Life) -> None:
    life.erase()
    body = {**VALUES, **OLD, "gender": "female", "effective_date": "2026-01-01"}
    answer = life.api.post(life.path, body)
    assert answer.status_code == 201
    assert answer.json()["id"] != life.member_id
    file = life.desk.load(csv_of([row(1, external_id=KEY, member_id=VALUES["member_id"], zipcode="02150")]))
    assert file.counts["updated"] == 1
    with life.db.read() as tx:
        [old] = tx.execute(select(members.c.external_id).where(members.c.id == life.member_id)).scalars()
    assert old == ""


def test_an_erasure_is_idempotent(life: Life) -> None:
    [first] = life.erase()
    life.clock.advance(60)
    person = life.db.ask(lambda tx: get_person(tx, life.member_id))
    [again] = erase_person(life.db, [person], Requester("cli:other", "request-2", life.clock()), life.clock)
    assert again == first._replace(is_new=False)
    assert len(life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member.erased")))) == 1
    with pytest.raises(NotFound):
        life.erase()


def test_the_trail_has_the_time_of_the_erasure_and_not_that_of_the_request(life: Life) -> None:
    persons = life.db.ask(lambda tx: find_persons(tx, KEY, None))
    asked = Requester("cli:test", "request-1", life.clock())
    life.clock.advance(600)
    [erasure] = erase_person(life.db, persons, asked, life.clock)
    [entry] = life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member.erased")))
    assert entry["at"] == erasure.erased_at == life.clock() > asked.now


def test_records_that_an_undo_withdrew_are_erased_too(life: Life) -> None:
    undone = life.desk.load(csv_of([row(40, first_name="Wilhelmina-QX")]))
    life.desk.undo(undone)
    assert life.api.post(life.path, row(40) | {"gender": "female"}).status_code == 201
    assert len(life.erase("E00040")) == 2
    assert not any("Wilhelmina-QX" in text or "E00040" in text for _, text in life.cells())


def test_rows_that_changed_nothing_lose_the_name_too_and_their_files_the_digest(life: Life) -> None:
    same = life.desk.load(csv_of([row(7), row(8)]))
    assert same.counts == {"unchanged": 2}
    life.erase("E00007")
    assert [line["external_id"] for line in life.desk.report(same)] == [None, "E00008"]
    assert life.desk.reread(same).sha256 is None


def test_rows_of_another_accounts_member_with_the_identifier_stay(life: Life, db: Database) -> None:
    other = Desk(db, make_customer(db, name="Other"), life.clock)
    refused = other.load(csv_of([row(1, external_id=KEY)]))
    assert [line["external_id"] for line in other.report(refused)] == [KEY]
    life.erase()
    assert [line["external_id"] for line in other.report(refused)] == [KEY]


def test_an_undo_leaves_an_erased_member_alone(life: Life) -> None:
    file = life.desk.load(csv_of([row(50, zipcode="02150"), row(51)]))
    life.erase("E00050")
    undo = life.desk.undo(file)
    assert undo.counts == {"refused": 1, "withdrawn": 1}
    assert not any("E00050" in text for _, text in life.cells())


def test_a_full_file_does_not_miss_an_erased_member(life: Life) -> None:
    one, other = row(60), row(61)
    life.desk.load(csv_of([one, other]), plan=1, full=True)
    life.erase("E00060")
    full = life.desk.load(csv_of([other]), plan=1, full=True)
    assert (full.counts, full.members_missing) == ({"unchanged": 1}, 0)


def test_a_file_that_has_not_ended_comes_first(life: Life) -> None:
    waiting = life.desk.hand_in(csv_of([row(70), row(1, external_id=KEY)]))
    with pytest.raises(FilesUnfinished, match=rf": {waiting.id}\."):
        life.erase()
    assert life.mentions() >= KEEPING
    life.desk.work(waiting)
    life.erase()
    assert life.mentions() == set()


def test_a_legal_hold_refuses_the_erasure_until_it_is_released(life: Life) -> None:
    actor = Requester("cli:counsel", "request-3", life.clock())
    person = life.db.ask(lambda tx: get_person(tx, life.member_id))
    with life.db.write() as tx:
        assert place_hold(tx, person, "Case 1", actor)
        assert not place_hold(tx, person, "Case 2", actor)
    with pytest.raises(UnderLegalHold, match="Case 1"):
        life.erase()
    assert life.mentions() >= KEEPING
    with life.db.write() as tx:
        assert release_hold(tx, person, actor)
        assert not release_hold(tx, person, actor)
    life.erase()
    assert life.mentions() == set()
    found = life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member")))
    assert [entry["action"] for entry in found] == ["member.erased", "member.released", "member.held"]


def test_an_invitation_that_waits_is_not_sent_any_more(life: Life) -> None:
    body = {**row(80), "gender": "female", "email": "waits@qx-mail.example", "invite_immediately": True}
    assert life.api.post(life.path, body).headers["Invitation"] == "immediate"
    life.erase("E00080")
    with life.db.read() as tx:
        states = tx.execute(
            text("SELECT state, reason, address FROM invitations ORDER BY id DESC LIMIT 1")
        ).one()
    assert tuple(states) == ("cancelled", "erased", "")


# The door in the history: only values may go, and only those of an erased member.

DEEDS: dict[str, dict[str, Any]] = {
    "another value": {"changes": {"first_name": [None, "Forged"]}},
    "a kept value": {"changes": {"effective_date": [None, "2020-01-01"]}},
    "another request": {"request_id": "other"},
    "another outcome": {"outcome": "moved"},
}


@pytest.mark.parametrize("deed", DEEDS)
def test_the_door_of_the_history_lets_nothing_else_through(life: Life, owner: Database, deed: str) -> None:
    life.erase()
    with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
        tx.execute(
            update(member_history).where(member_history.c.member_id == life.member_id).values(DEEDS[deed])
        )
    with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
        tx.execute(member_history.delete().where(member_history.c.member_id == life.member_id))


def test_the_door_is_shut_for_a_member_that_is_not_erased(life: Life, owner: Database) -> None:
    mine = member_history.c.member_id == life.member_id
    with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
        tx.execute(update(member_history).where(mine).values(changes={}))


def test_the_fact_of_an_erasure_can_not_be_taken_back(life: Life, owner: Database) -> None:
    life.erase()
    erasures = metadata.tables["erasures"]
    for deed in (erasures.delete(), update(erasures).values(actor="nobody")):
        with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
            tx.execute(deed)
    if life.db.is_sqlite:
        found = life.db.ask(lambda tx: tx.execute(select(erasures)).mappings().one())
        with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
            tx.execute(insert(erasures).prefix_with("OR REPLACE").values(dict(found) | {"actor": "nobody"}))


def test_after_a_vacuum_no_file_of_the_database_holds_a_value(life: Life, superuser: Database) -> None:
    assert _in_files(superuser)
    life.erase()
    pooled = superuser.engine.raw_connection()
    driver: Any = pooled.driver_connection
    if life.db.is_sqlite:
        driver.execute("VACUUM")
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        driver.autocommit = True
        driver.execute("SET statement_timeout = 0")
        driver.execute(f"VACUUM FULL {', '.join(TABLES_OF_PERSONS)}")
        driver.execute("RESET statement_timeout")
        driver.autocommit = False
    pooled.close()
    assert _in_files(superuser) == set()


def _in_files(db: Database) -> set[str]:
    """The values that stand in the bytes of SQLite's files, or of the tables and indexes of PostgreSQL."""
    if db.is_sqlite:
        files = Path(str(db.engine.url.database)).parent.glob("frontdesk.db*")
        content = b"".join(file.read_bytes() for file in files)
    else:
        query = (
            "SELECT pg_read_binary_file(pg_relation_filepath(oid)) FROM pg_class "
            "WHERE relkind IN ('r', 'i', 't') AND relnamespace IN ('public'::regnamespace, 'pg_toast'::regnamespace)"
        )
        with db.engine.connect() as connection:
            connection.exec_driver_sql("CHECKPOINT")
            content = b"".join(bytes(row[0]) for row in connection.exec_driver_sql(query))
    return {value for value in SOUGHT if value.encode() in content}


def test_an_erasure_takes_the_merged_records_and_pairs_too(life: Life) -> None:
    cli = CommandLine(life.config.database_url)
    twin = {"first_name": "Zebediah", "last_name": "Quillfeather", "dob": "1931-07-19"}
    assert life.api.post(life.path, member_body(6, **twin)).status_code == 201
    cli.json("member", "merge", "AB 000006", "QX 7719-Zebedee")
    cli.json("member", "distinct", "AB 000006", "AB 000005")
    exported = cli.json("member", "export", "QX 7719-Zebedee")
    assert [len(each["tables"]["distinct_members"]) for each in exported] == [0, 1]
    persons = life.db.ask(lambda tx: find_persons(tx, "AB 000006", None))
    assert len(erase_person(life.db, persons, life.requester(), life.clock)) == 2
    assert life.mentions() == set()
    assert not any(place.startswith("distinct_members") for place, _ in life.cells())

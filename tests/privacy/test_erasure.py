"""A person can be forgotten: no value is left, and ids, times and the fact are."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import DBAPIError

from frontdesk.audit import AuditQuery, list_entries
from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.eligibility import find_members, list_history
from frontdesk.eligibility.tables import member_history, members
from frontdesk.errors import NotFound
from frontdesk.files.drafts import steps
from frontdesk.files.drafts.steps import DraftKey, DraftUpload, NewDraft
from frontdesk.invitations import list_suppressions, suppress
from frontdesk.invitations.model import LIFTED_BY_OPERATORS
from frontdesk.invitations.suppression import unsuppress
from frontdesk.privacy.classification import CLASSIFICATION
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.privacy.model import ColumnKind, FilesUnfinished
from frontdesk.reach import EVERY, Reach
from tests.cli.conftest import CommandLine
from tests.factories import make_customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.privacy.conftest import KEY, SOUGHT, TABLES_OF_PERSONS, VALUES, Life

KEEPING = {
    *(
        "members.external_id",
        "members.first_name",
        "members.dob",
        "members.metadata",
        "members.email_folded",
    ),
    *("member_history.changes", "invitations.address", "invitations.address_folded"),
    *("suppressions.address_folded", "file_rows.external_id"),
    *("eligibility_files.file_name", "eligibility_files.ignored"),
    *("caught_messages.recipient", "caught_messages.content", "stored_answers.body"),
}


def test_every_column_is_classified_once() -> None:
    assert {table: set(metadata.tables[table].c.keys()) for table in metadata.tables} == {
        table: set(kinds) for table, kinds in CLASSIFICATION.items()
    }


def test_no_value_of_an_erased_person_is_left_in_any_column(life: Life) -> None:
    before = life.db.ask(lambda tx: list_history(tx, life.member_id))
    assert life.mentions() >= KEEPING
    # The columns that hold a value are those that the classification says.
    assert all(
        CLASSIFICATION[table][column] in (ColumnKind.PERSON, ColumnKind.PERSONS)
        for table, column in (place.split(".") for place in life.mentions())
    )
    [erased] = life.erase()
    assert (erased.member_id, erased.is_new) == (life.member_id, True)
    assert life.mentions() == set()
    [neighbour] = life.db.ask(lambda tx: find_members(tx, EVERY, "AB 000005"))
    assert (neighbour["first_name"], neighbour["email"]) == ("Neighbour", "robin.5@example.com")
    kept = {"plan_id", "effective_date", "expiry_date"}
    entries = [
        entry._replace(changes={name: entry.changes[name] for name in kept & entry.changes.keys()})
        for entry in before
    ]
    assert life.db.ask(lambda tx: list_history(tx, life.member_id)) == entries
    found = select(members.c.effective_date, members.c.plan_id).where(
        members.c.id == life.member_id
    )
    assert life.db.ask(lambda tx: tx.execute(found).one()) == (
        "2026-01-01",
        life.customer.plan_ids[0],
    )
    [entry] = life.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="member.erased")))
    assert (entry["subject_id"], entry["actor"]) == (life.member_id, "cli:test")


def test_an_erased_member_can_come_back_but_is_never_mailed(life: Life) -> None:
    life.erase()
    body = {
        **VALUES,
        "gender": "female",
        "effective_date": "2026-01-01",
        "invite_immediately": True,
    }
    again = life.api.post(life.path, body)
    assert (again.status_code, again.headers["Invitation"]) == (201, "none; reason=suppressed")
    assert again.json()["id"] != life.member_id
    said = {name: VALUES[name] for name in ("member_id", "first_name", "last_name", "dob")}
    file = life.desk.load(csv_of([row(1, external_id=KEY, **said, zipcode="02150")]))
    assert file.counts["updated"] == 1
    query = select(members.c.external_id).where(members.c.id == life.member_id)
    assert life.db.ask(lambda tx: tx.execute(query).scalar_one()) == ""
    [kept] = life.db.ask(lambda tx: list_suppressions(tx, EVERY, limit=10))
    assert kept.address.startswith("#")
    with life.db.write() as tx:
        assert not suppress(tx, VALUES["email"], kept.reason, now=life.clock())
    life.erase()  # the new record: what is kept of the address stays
    assert life.api.post(life.path, body).headers["Invitation"] == "none; reason=suppressed"
    with life.db.write() as tx:
        unsuppress(tx, EVERY, VALUES["email"], may_lift=LIFTED_BY_OPERATORS)
        assert list_suppressions(tx, EVERY, limit=10) == []


def test_the_trail_has_the_time_of_an_erasure_and_not_that_of_its_request(life: Life) -> None:
    persons = life.db.ask(lambda tx: find_persons(tx, EVERY, KEY))
    asked = life.requester()
    life.clock.advance(600)
    [erased] = erase_person(life.db, persons, asked, life.clock)
    [entry] = life.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="member.erased")))
    assert entry["at"] == erased.erased_at == asked.now + timedelta(seconds=600)
    with pytest.raises(NotFound):
        life.erase()


def test_files_and_invitations_after_an_erasure(life: Life) -> None:
    """Unchanged rows lose the name too and their files the digest, other accounts' rows stay, an
    undo leaves the member alone, a full file does not miss it, records that an undo withdrew go
    too, and an invitation that waits is not sent.
    """
    desk = life.desk
    other = Desk(life.db, make_customer(life.db, name="Other"), life.clock)
    same = desk.load(csv_of([row(7), row(8)]))
    theirs = other.load(csv_of([row(7)]))
    desk.load(csv_of([row(60), row(61)]), plan=1, full=True)
    new = desk.load(csv_of([row(50, zipcode="02150"), row(51)]))
    body = {
        **row(80),
        "gender": "female",
        "email": "waits@qx-mail.example",
        "invite_immediately": True,
    }
    assert life.api.post(life.path, body).headers["Invitation"] == "immediate"
    desk.undo(desk.load(csv_of([row(40, first_name="Wilhelmina-QX")])))  # which withdraws it
    assert life.api.post(life.path, row(40)).status_code == 201
    for key, records in (("E00007", 1), ("E00060", 1), ("E00050", 1), ("E00080", 1), ("E00040", 2)):
        assert len(life.erase(key)) == records
    assert [line["external_id"] for line in desk.report(same)] == [None, "E00008"]
    assert desk.reread(same).sha256 is None
    assert {line["external_id"] for line in other.report(theirs)} == {"E00007"}
    assert desk.undo(new).counts == {"refused": 1, "withdrawn": 1, "lost": 1}
    cells = str([*life.cells()])
    assert [value for value in ("E00050", "E00040", "Wilhelmina-QX") if value in cells] == []
    full = desk.load(csv_of([row(61)]), plan=1, full=True)
    assert (full.counts, full.members_missing) == ({"unchanged": 1}, 0)
    query = text("SELECT state, reason, address FROM invitations ORDER BY id DESC LIMIT 1")
    assert tuple(life.db.ask(lambda tx: tx.execute(query).one())) == ("cancelled", "erased", "")


def test_the_history_lets_only_values_of_an_erased_member_go_and_no_fact(
    life: Life, owner: Database
) -> None:
    erasures = metadata.tables["erasures"]
    mine = update(member_history).where(member_history.c.member_id == life.member_id)
    refuse(owner, mine.values(changes={}))  # it is not erased
    life.erase()
    for values in (
        {"changes": {"first_name": [None, "Forged"]}},
        {"changes": {"effective_date": [None, "2020-01-01"]}},  # which is kept
        {"request_id": "other"},
        {"outcome": "moved"},
    ):
        refuse(owner, mine.values(values))
    refuse(
        owner, member_history.delete(), erasures.delete(), update(erasures).values(actor="nobody")
    )
    if life.db.is_sqlite:
        [found] = life.db.ask(lambda tx: tx.execute(select(erasures)).mappings().all())
        refuse(
            owner,
            insert(erasures).prefix_with("OR REPLACE").values(dict(found) | {"actor": "nobody"}),
        )


def refuse(owner: Database, *deeds: Any) -> None:
    for deed in deeds:
        with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
            tx.execute(deed)


@pytest.mark.parametrize(
    "database_url", ["postgresql"], indirect=True
)  # of SQLite: test_bytes_on_disk.py
def test_after_a_vacuum_no_file_of_postgresql_holds_a_value(
    life: Life, superuser: Database
) -> None:
    assert in_files(superuser)
    life.erase()
    pooled = superuser.engine.raw_connection()
    driver: Any = pooled.driver_connection
    driver.autocommit = True
    driver.execute("SET statement_timeout = 0")
    driver.execute(f"VACUUM FULL {', '.join(TABLES_OF_PERSONS)}")
    driver.execute("RESET statement_timeout")
    driver.autocommit = False
    pooled.close()
    assert in_files(superuser) == set()


def in_files(db: Database) -> set[str]:
    """The values that stand in the bytes of tables and indexes."""
    query = (
        "SELECT pg_read_binary_file(pg_relation_filepath(oid)) FROM pg_class WHERE relkind IN "
        "('r', 'i', 't') AND relnamespace IN ('public'::regnamespace, 'pg_toast'::regnamespace)"
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
    persons = life.db.ask(lambda tx: find_persons(tx, EVERY, "AB 000006"))
    assert len(erase_person(life.db, persons, life.requester(), life.clock)) == 2
    assert life.mentions() == set()
    assert not any(place.startswith("distinct_members") for place, _ in life.cells())


def test_an_erasure_waits_for_an_upload_by_steps_and_names_it(life: Life) -> None:
    by = life.desk.requester()
    with life.db.write() as tx:
        begun = steps.begin_draft(tx, NewDraft(life.customer.account_id, "census.csv"), by)
    upload = DraftUpload(life.db, begun, life.desk.clock)
    upload.write(csv_of([row(1)]))
    draft = upload.finish(by)
    with pytest.raises(FilesUnfinished, match=rf"member: {draft.id}\. Discard them, or wait"):
        life.erase()
    with life.db.write() as tx:
        key = DraftKey(draft.id, draft.version)
        steps.discard(tx, key, Reach.of(life.customer.account_id), by)
    steps.delete_left_drafts(life.db, life.desk.clock())
    life.erase()

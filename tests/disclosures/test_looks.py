"""Who has looked at a person: the entries about it, its files' reports and names, its plans' lists,
in pages; an account's entries and a user's.
"""

import re
from pathlib import Path

import pytest

from frontdesk import audit
from frontdesk.audit import AuditEntry, list_by_user, list_of_account, record
from frontdesk.db import Database
from frontdesk.disclosures import check_answer, list_entries_about, read_covered
from frontdesk.disclosures.looks import LAST, OF_MEMBERS
from frontdesk.disclosures.model import CallersWords, CheckedField
from frontdesk.eligibility.model import Outcome
from frontdesk.eligibility.search import ByExternalId
from frontdesk.errors import NotFound
from frontdesk.reach import EVERY, Reach
from tests.conftest import SetClock
from tests.eligibility.finding import WHO, Finder
from tests.factories import NOW, make_customer
from tests.files.loading import Desk, csv_of, row

SOURCE = Path(audit.__file__).parents[1]


def actions(finder: Finder, member_id: int, *, reach: Reach | None = None) -> list[str]:
    with finder.db.read() as tx:
        found = list_entries_about(tx, reach or finder.reach, member_id)
    assert found.before_id is None
    return [entry["action"] for entry in found.entries]


def note(db: Database, action: str, subject_id: int, *, actor: str = "user:1") -> None:
    with db.write() as tx:
        record(tx, [AuditEntry(action, actor, "request", 1, subject_id)], now=NOW)


def test_looks_at_a_person_its_files_and_its_plans_are_told(
    finder: Finder, db: Database, clock: SetClock
) -> None:
    for number in range(90, 95):  # so that ids of members, files and plans differ
        finder.enrol(number)
    desk = Desk(db, finder.customer, clock)
    file = desk.load(csv_of([row(1), row(2)]))
    other_file = desk.load(csv_of([row(3)]))
    [id_] = finder.ids(ByExternalId("E00001"))
    with db.read() as tx:
        change = read_covered(tx, finder.reach, id_, now=NOW).last_change
    assert change is not None
    assert (change.file_id, change.place) == (file.id, 2)
    finder.enrol(1, plan=1, external_id="E00001")
    first, second = finder.customer.plan_ids
    with db.write() as tx:
        check_answer(tx, WHO, EVERY, CallersWords(id_, 1, CheckedField.DOB, "1977-01-11"))
    for action, subject in (
        ("file.report_read", file.id),
        ("file.names_read", file.id),
        ("file.names_read", other_file.id),
        ("members.read", first),
        ("members.read", second),
        ("members.read", 10**6),
        ("plan.changed", id_),
        ("file.approved", file.id),
        ("member.read", id_),
        ("member.read", id_ + 1000),
    ):
        note(db, action, subject)
    assert actions(finder, id_) == [
        "member.read",
        "members.read",
        "members.read",
        "file.names_read",
        "file.report_read",
        "member.checked",
        "eligibility.moved",
    ]


def test_the_looks_at_a_merged_member_are_those_at_the_person(finder: Finder, db: Database) -> None:
    kept = finder.enrol(1)
    dropped = finder.enrol(2)
    note(db, "member.read", dropped)
    finder.merge(1, 2)
    expected = ["member.merged", "member.read", "eligibility.created", "eligibility.created"]
    assert actions(finder, kept) == actions(finder, dropped) == expected


def test_a_repeated_record_is_no_look(finder: Finder) -> None:
    id_ = finder.enrol(1)
    finder.enrol(1)
    assert actions(finder, id_) == ["eligibility.created"]


def test_pages_follow_each_other_without_gap(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    for number in range(6):
        subject = finder.customer.plan_ids[0] if number % 2 else id_
        note(db, "members.read" if number % 2 else "member.read", subject)
    whole = db.ask(lambda tx: list_entries_about(tx, finder.reach, id_)).entries
    paged = []
    before: int | None = LAST
    while before is not None:
        with db.read() as tx:
            page = list_entries_about(tx, finder.reach, id_, before_id=before, size=3)
        paged += page.entries
        before = page.before_id
    assert paged == whole
    assert len(whole) == 7


def test_nobody_beyond_the_reach_sees_who_looked(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    stranger = Reach.of(make_customer(db, name="Stranger").account_id)
    with pytest.raises(NotFound):
        actions(finder, id_, reach=stranger)
    assert actions(finder, id_, reach=EVERY) == ["eligibility.created"]


def test_an_accounts_page_leaves_entries_about_members_out(finder: Finder, db: Database) -> None:
    finder.enrol(1)
    account_id = finder.customer.account_id
    wanted = ["client.rotated", "file.approved", "plan.changed"]
    with db.write() as tx:
        for action in (*wanted, "member.read", "members.read", "eligibility.updated"):
            record(tx, [AuditEntry(action, "cli:a", "r", account_id, 1)], now=NOW)
        record(tx, [AuditEntry("client.rotated", "cli:a", "r", account_id + 1, 1)], now=NOW)
    with db.read() as tx:
        found = list_of_account(tx, account_id, before_id=LAST, limit=2)
        assert [entry["action"] for entry in found] == ["plan.changed", "file.approved"]
        rest = list_of_account(tx, account_id, before_id=found[-1]["id"], limit=9)
        assert rest[0]["action"] == "client.rotated"
        assert {entry["account_id"] for entry in rest} == {account_id}


def test_a_users_page_has_all_that_the_user_did(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    for actor in ("user:1", "user:12", "user:1", "cli:anna"):
        note(db, "member.read", id_, actor=actor)
    with db.read() as tx:
        found = list_by_user(tx, "user:1", before_id=LAST, limit=9)
        assert [entry["actor"] for entry in found] == ["user:1"] * 2
        assert len(list_by_user(tx, "user:1", before_id=found[0]["id"], limit=9)) == 1
        assert list_by_user(tx, "user:1", before_id=LAST, limit=1) == found[:1]


def test_every_action_about_a_member_is_known() -> None:
    events = SOURCE / "events"
    paths = (path for path in SOURCE.rglob("*.py") if events not in path.parents)
    text = "\n".join(path.read_text() for path in paths)
    written = set(re.findall(r'"(member\.[a-z_]+)"', text))
    events_of_members = {"member.created", "member.updated", "member.moved", "member.ended"}
    events_of_members |= {"member.reopened", "member.withdrawn"}
    known = {action for action in OF_MEMBERS if action.startswith("member.")}
    assert written - events_of_members == known
    assert len(OF_MEMBERS) - len(known) == len(Outcome) - 1

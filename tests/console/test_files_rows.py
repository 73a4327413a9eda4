"""The lists of a file: each number opens its rows, covered until their names are opened."""

import json
import re
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.audit.tables import audit_entries
from frontdesk.db import Database
from frontdesk.disclosures.model import OPEN_TIME
from frontdesk.files import row_store
from frontdesk.files.model import WOULD_LOSE, EligibilityFile, RowOutcome
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.console.held import hold_file, path_of
from tests.factories import Customer
from tests.files.loading import COLUMNS, Desk, csv_of, row

MARK = "Qzx"
# A marker in every field that a person has, and no other text of the row has.
PERSON = {
    "first_name": f"{MARK}first",
    "last_name": f"{MARK}last",
    "middle_name": f"{MARK}middle",
    "dob": "1943-07-19",
    "zipcode": "59718",
    "city": f"{MARK}city",
    "address_line_1": f"{MARK}street",
    "email": f"{MARK}mail@example.com",
    "phone": "4065550143",
    "member_id": f"{MARK}member",
}
VALUES = [MARK, MARK.lower(), "1943-07-19", "07-19", "59718", "4065550143", "555-0143"]


def person(number: int, **changes: Any) -> dict[str, Any]:
    own = {
        "member_id": f"{MARK}member{number}",
        "email": f"{MARK}mail{number}@example.com",
        "last_name": f"{MARK}last {'abcdefghijklmnopqrstuvwxyz'[number % 26]}",
    }
    return row(number, **PERSON) | own | changes


WITH_ALL = (*dict.fromkeys((*COLUMNS, *PERSON, "expiry_date")),)


def covers(browser: Browser) -> bool:
    """Whether the page, its address and its headers have no value of a person."""
    shown = browser.page + browser.path + str(browser.answer.headers)
    return not [value for value in VALUES if value in shown]


def rows_of(browser: Browser) -> list[str]:
    found = re.findall(r"<tbody>(.*?)</tbody>", browser.page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", "".join(found), re.DOTALL)
    return [" ".join(re.sub("<[^>]+>", " ", each).split()) for each in rows]


def links_of(browser: Browser, file: EligibilityFile) -> dict[str, str]:
    """The addresses of lists on the page, with their texts."""
    found = re.findall(rf'<a href="({path_of(file)}/rows[^"]*)">(.*?)</a>', browser.page)
    return {path.replace("&amp;", "&"): re.sub("<[^>]+>", "", text) for path, text in found}


def trail(db: Database) -> list[tuple[str, str, int | None, dict[str, Any]]]:
    columns = audit_entries.c["action", "actor", "subject_id", "detail"]
    query = select(*columns).where(audit_entries.c.action.startswith("file.names"))
    with db.read() as tx:
        return [(a, b, c, dict(d)) for a, b, c, d in tx.execute(query.order_by(audit_entries.c.id))]


@pytest.fixture
def mixed(desk: Desk) -> EligibilityFile:
    """A file with a row of most outcomes."""
    desk.load(csv_of([person(n) for n in range(6)], WITH_ALL))
    desk.load(csv_of([person(6)], WITH_ALL), plan=1)
    rows = [
        person(0, zipcode="59719"),
        person(1, expiry_date="2026-12-31"),
        person(2),
        person(3, dob="never", email=f"{MARK} no mail"),
        person(6),
        person(7),
        person(8, email="none@none.com"),
        person(4, external_id="E00099", member_id=f"{MARK}other"),
    ]
    file = desk.load(csv_of(rows, WITH_ALL), file_name="mixed.csv")
    expected = {"updated", "unchanged", "refused", "moved", "created", "warned", "lost"}
    assert file.state == "done"
    assert expected <= file.counts.keys()
    return file


def test_each_number_opens_its_rows_covered(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn
) -> None:
    browser = sign_in(Role.EDITOR).open(path_of(mixed))
    assert covers(browser)
    links = links_of(browser, mixed)
    for path, text in links.items():
        if "list=" in path:
            number = int(text.split()[0])
            assert len(rows_of(browser.open(path))) == number, path
        else:
            assert rows_of(browser.open(path)), path
        assert covers(browser), path
        assert "<title>Rows of file" in browser.page
    assert {"lost", "created", "updated", "moved", "refused", "warned", "unchanged"} == {
        path.rpartition("list=")[2] for path in links if "list=" in path
    }
    assert covers(browser.open(path_of(mixed).rpartition("/")[0]))


def test_a_changed_row_names_its_fields_and_its_access(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn
) -> None:
    browser = sign_in(Role.VIEWER)
    changed = rows_of(browser.open(f"{path_of(mixed)}/rows?list=updated"))
    assert changed[0].startswith("Q. Q. · 1943 E00000")
    assert changed[0].endswith("zipcode 2")
    assert changed[1] == (
        "Q. Q. · 1943 E00001 2026-12-31 from 2026-01-01 on 2026-01-01 to 2026-12-31 expiry_date 3"
    )
    [refused] = rows_of(browser.open(f"{path_of(mixed)}/rows?list=refused"))
    assert refused.startswith("no record covered")
    assert "E00003" not in browser.page
    assert "looks like" not in refused or MARK not in refused
    [moved] = rows_of(browser.open(f"{path_of(mixed)}/rows?list=moved"))
    assert moved.startswith("Q. Q. · 1943 E00006")


def test_faults_are_grouped_by_code_and_lead_to_their_rows(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn
) -> None:
    browser = sign_in(Role.VIEWER).open(path_of(mixed))
    text = " ".join(re.sub("<[^>]+>", " ", browser.page).split())
    assert "not_a_date in dob" in text
    assert "Correct it at the source and send the whole file again" in text
    [row_] = rows_of(browser.open(f"{path_of(mixed)}/rows?code=not_a_date"))
    assert row_.startswith("no record covered")
    assert browser.open(f"{path_of(mixed)}/rows?code=no_such_code").status == 200
    assert "No row of the file is in this list now." in browser.page


def test_pages_of_a_list_follow_each_other(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk, 60)
    browser = sign_in(Role.VIEWER).open(path_of(held) + "/rows?list=would_lose")
    seen = []
    while True:
        found = rows_of(browser)
        assert len(found) <= 25
        seen += found
        following = re.findall(r'<a href="([^"]+)" rel="next">', browser.page)
        if not following:
            break
        browser.open(following[0].replace("&amp;", "&"))
    assert len(seen) == len({*seen}) == 60
    assert ">First page</a>" in browser.page


def test_a_person_whose_access_comes_back_is_listed_with_both_days(
    desk: Desk, sign_in: SignIn, db: Database
) -> None:
    held = hold_file(desk)
    later = RowOutcome(
        place=99,
        external_id="E00001",
        outcome=WOULD_LOSE,
        member_id=2,
        access=("2026-01-01/..", "2026-01-01/2026-11-20 2027-01-01/..", True, False),
    )
    with db.write() as tx:
        row_store.insert_outcomes(tx, held.id, held.chunks_done, [later])
        row_store.insert_lists(tx, held.id, held.chunks_done, [WOULD_LOSE])
    path = f"{path_of(held)}/rows?list=would_lose&after={held.chunks_done}.0"
    [shown] = rows_of(sign_in(Role.VIEWER).open(path))
    assert shown.startswith("R. S. · 1980 E00001 2026-11-20 2027-01-01 from 2026-01-01 on")
    assert "2026-01-01 to 2026-11-20, from 2027-01-01 on" in shown
    assert ".." not in shown
    assert shown.endswith(" 99")


@pytest.mark.parametrize("query", ["list=odd", "code=A%20B", "list=created&after=x", "after=1"])
def test_a_list_that_no_file_has_is_refused(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn, query: str
) -> None:
    assert sign_in(Role.VIEWER).open(f"{path_of(mixed)}/rows?{query}").status == 422


def test_names_open_for_a_reason_for_this_file_and_15_minutes(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn, db: Database, clock: SetClock
) -> None:
    path = f"{path_of(mixed)}/rows?list=updated"
    browser = sign_in(Role.EDITOR).open(path)
    browser.send(path_of(mixed) + "/names", reason="correction", case="HR-2026/17")
    assert browser.path == path
    assert rows_of(browser)[0].startswith("Qzxfirst Qzxlast a · 1943-07-19 E00000")
    opened, read = trail(db)
    assert opened[:3] == ("file.names_opened", "user:1", mixed.id)
    told = opened[3]
    assert (told["reason"], told["case"]) == ("correction", "HR-2026/17")
    assert (read[0], read[2], read[3]["people"]) == ("file.names_read", mixed.id, 2)
    assert MARK not in json.dumps([each[3] for each in trail(db)])
    # The lists of the file are open together, its own page and other files stay covered.
    browser.open(f"{path_of(mixed)}/rows?list=created")
    assert PERSON["first_name"] in browser.page
    assert len(trail(db)) == 3
    assert covers(browser.open(path_of(mixed)))
    other = path_of(mixed).rpartition("/")[0] + f"/{mixed.id - 2}/rows?list=created"
    assert covers(browser.open(other))
    assert rows_of(browser)
    clock.advance(OPEN_TIME.total_seconds() - 1)
    assert not covers(browser.open(path))
    clock.advance(1)
    assert covers(browser.open(path))
    assert len(trail(db)) == 4


def test_names_are_open_to_one_user_in_one_session(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn, db: Database
) -> None:
    path = f"{path_of(mixed)}/rows?list=updated"
    browser = sign_in(Role.EDITOR).open(path)
    browser.send(path_of(mixed) + "/names", reason="audit", case="1")
    assert not covers(browser)
    other = sign_in(Role.APPROVER).open(path)
    assert covers(other)
    browser.open("/console/me")
    browser.send("/console/sign-out")
    again = sign_in(Role.EDITOR, Role.ADMIN).open(path)  # SQLite may give it the session's number
    assert covers(again)


def test_names_need_a_reason_and_a_case_number(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn, db: Database
) -> None:
    browser = sign_in(Role.EDITOR)
    for reason, case, said in (
        ("", "HR-1", "The reason: choose one"),
        ("curiosity", "HR-1", "The reason: choose one"),
        ("audit", "", "The case number must have"),
        ("audit", "Robin Sample", "The case number must have"),
        ("audit", "Robin", "The case number must have"),
        ("audit", "1" * 41, "The case number must have 1 to 40 letters"),
    ):
        browser.open(f"{path_of(mixed)}/rows?list=updated")
        browser.send(path_of(mixed) + "/names", reason=reason, case=case)
        assert (browser.status, said in browser.page, covers(browser)) == (422, True, True)
        typed = browser.form(path_of(mixed) + "/names")
        assert (typed["case"], typed["list"]) == (case, "updated")
    assert trail(db) == []


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ADMIN, Role.SUPPORT, Role.OPERATOR])
def test_names_need_the_right(
    desk: Desk, mixed: EligibilityFile, sign_in: SignIn, db: Database, role: Role
) -> None:
    browser = sign_in(role).open(f"{path_of(mixed)}/rows?list=updated")
    assert rows_of(browser)
    assert "Show the names" not in browser.page
    token = browser.open("/console/me").form("/console/me")["token"]
    fields = {"token": token, "reason": "audit", "case": "1", "list": "updated"}
    browser.post(path_of(mixed) + "/names", fields)
    assert (browser.status, "editor, approver" in browser.page, trail(db)) == (403, True, [])


def test_a_record_that_is_gone_has_no_name(desk: Desk, sign_in: SignIn) -> None:
    file = desk.load(csv_of([person(1)], WITH_ALL))
    desk.undo(file)
    path = f"{path_of(file)}/rows?list=created"
    browser = sign_in(Role.EDITOR).open(path)
    assert rows_of(browser) == ["no record covered 2"]
    browser.send(path_of(file) + "/names", reason="audit", case="1")
    assert rows_of(browser) == ["no record E00001 2"]
    assert covers(browser)


@pytest.mark.parametrize("tail", ["", "/rows?list=created", "/undo"])
def test_a_file_of_another_account_is_an_unknown_one(
    desk: Desk, other: Desk, sign_in: SignIn, customer: Customer, tail: str
) -> None:
    theirs = other.load(csv_of([person(1)], WITH_ALL), file_name="theirs.csv")
    browser = sign_in(Role.EDITOR, Role.APPROVER)
    own = f"/console/accounts/{customer.account_id}/files"
    pages = []
    for file_id in (theirs.id, 999_999):
        browser.open(f"{own}/{file_id}{tail}")
        pages.append((browser.status, re.sub("Request [0-9a-f]+", "", browser.page)))
    assert pages[0] == pages[1]
    assert pages[0][0] == 404
    token = browser.open("/console/me").form("/console/me")["token"]
    for action in ("cancel", "approve", "mapping", "undo", "names"):
        fields = {"token": token, "version": "done-0", "reason": "audit", "case": "1"}
        browser.post(f"{own}/{theirs.id}/{action}", fields)
        assert browser.status == 404, action
    assert other.reread(theirs) == theirs

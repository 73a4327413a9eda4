"""Trail: who did what, for an account's admin and for auditors; entries in words, without a person."""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from frontdesk.audit import AuditEntry, record
from frontdesk.audit.actions import ACTIONS
from frontdesk.console import trail
from frontdesk.console.trail_words import describe_detail
from frontdesk.db import Database
from frontdesk.eligibility.model import Outcome
from frontdesk.files.model import FileState
from frontdesk.users.model import Role
from tests.conftest import Api
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.factories import NOW, Customer, make_customer, member_body
from tests.files.loading import Desk, csv_of, row

SOURCE = Path(__file__).parents[2] / "src/frontdesk"
WRITERS = re.compile(
    r"_?(?:entry|record|record_action|record_own|record_read|recorded|note|change)"
)


def trail_of(customer: Customer, query: str = "") -> str:
    return f"/console/accounts/{customer.account_id}/trail{query}"


def rows(page: str) -> list[list[str]]:
    """The cells of the table's body as text."""
    [body] = re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL) or [""]
    found = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    cells = (re.findall(r"<td[^>]*>(.*?)</td>", each, re.DOTALL) for each in found)
    return [[unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in each] for each in cells]


def note(db: Database, *entries: AuditEntry) -> None:
    with db.write() as tx:
        record(tx, entries, now=NOW)


def enrol(api: Api, customer: Customer, number: int = 1) -> int:
    answer = api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(number))
    return int(answer.json()["id"])


@pytest.mark.parametrize("role", Role)
def test_who_may_read_which_trail(sign_in: SignIn, customer: Customer, role: Role) -> None:
    browser = sign_in(role)
    may = role in (Role.ADMIN, Role.AUDITOR)
    assert (browser.open(trail_of(customer)).status == 200) == may
    assert ('aria-current="page">Trail' in browser.page) == may
    if not may:
        assert browser.status == 403
    browser.open("/console/trail")
    assert browser.status == (200 if role is Role.AUDITOR else 403)
    assert (">Trail of all</a>" in browser.page) == (role is Role.AUDITOR)


def test_an_entry_says_who_did_what_about_what(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    account_id = customer.account_id
    admin = sign_in(Role.ADMIN)
    network = "3fa9c2d1e5b7a9f0"
    note(
        db,
        AuditEntry("plan.changed", customer.client_id, "r1", account_id, 1, {"network": network}),
        AuditEntry("file.approved", "cli:olga", "r2", account_id, 7),
        AuditEntry("retention.pruned", "retention", "r3", account_id),
    )
    found = rows(admin.open(trail_of(customer)).page)
    by_request = {row[-1]: row[1:-1] for row in found}
    assert by_request["r1"] == ["Benefits feed", "changed a plan", "Plan 1", "network 3fa9c2d1"]
    assert by_request["r2"] == ["an operator", "approved a held file", "File 7", ""]
    assert by_request["r3"] == ["retention", "deleted data after its retention", "", ""]
    assert "signed in" in [row[2] for row in found]
    assert f'href="/console/accounts/{account_id}/files/7"' in admin.page
    assert "frontdesk audit export" in admin.page


def test_reading_the_trail_is_an_entry(sign_in: SignIn, customer: Customer, db: Database) -> None:
    admin = sign_in(Role.ADMIN)
    admin.open(trail_of(customer))
    assert "read the trail" not in admin.page
    admin.open(trail_of(customer, "?user=1"))
    found = rows(admin.open(trail_of(customer)).page)
    assert [row[2] for row in found[:2]] == ["read the trail"] * 2
    assert "of user 1" in found[0][4]
    assert "of user" not in found[1][4]


def test_a_trail_goes_on_by_the_page(sign_in: SignIn, customer: Customer, db: Database) -> None:
    entries = [
        AuditEntry("plan.changed", "cli:a", f"n{number}", customer.account_id, 1)
        for number in range(120)
    ]
    note(db, *entries)
    admin = sign_in(Role.ADMIN)
    admin.open(trail_of(customer))
    seen = []
    while True:
        found = [row[-1] for row in rows(admin.page) if row[-1].startswith("n")]
        assert len(rows(admin.page)) <= 50
        seen += found
        following = re.search(r'<a href="([^"]+)" rel="next">', admin.page)
        if following is None:
            break
        admin.open(following[1])
    assert seen == [f"n{number}" for number in reversed(range(120))]
    assert '">First page</a>' in admin.page
    assert "No earlier entry." in admin.open(trail_of(customer, "?before=1")).page


def test_a_user_is_chosen_from_those_of_the_account(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    sign_in(Role.EDITOR)
    admin = sign_in(Role.ADMIN)
    support = sign_in(Role.SUPPORT)
    support.open(f"/console/accounts/{customer.account_id}/files")
    page = admin.open(trail_of(customer)).page
    options = dict(re.findall(r'<option value="(\d+)"[^>]*>([^<]*)</option>', page))
    assert len(options) == 2
    for user_id in options:
        note(db, AuditEntry("member.read", f"user:{user_id}", "r", customer.account_id, 4711))
        admin.open(trail_of(customer, f"?user={user_id}"))
        found = rows(admin.page)
        assert found[0][2:4] == ["read a member's record", "Person 4711"]
        assert found[-1][2] == "signed in"
        assert f'<option value="{user_id}" selected>' in admin.page
        assert f'href="{trail_of(customer)}?person=4711"' in admin.page
    assert admin.open(trail_of(customer, "?user=3")).status == 404
    assert "There is no user, person or file of this number here." in admin.page
    assert 'name="person"' in admin.page
    assert admin.open(trail_of(customer, "?person=abc")).status == 422
    assert "must be a number" in admin.page
    assert rows(admin.page) == []
    assert sign_in(Role.AUDITOR).open("/console/trail?user=3").status == 200


def test_the_latest_users_are_offered_and_all_are_linked(
    sign_in: SignIn, customer: Customer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail, "MOST_USERS", 1)
    sign_in(Role.EDITOR)
    page = sign_in(Role.ADMIN).open(trail_of(customer)).page
    assert re.findall(r'<option value="(\d+)"', page) == ["2"]
    assert "the latest 1 users" in page
    assert f'href="{trail_of(customer)}?user=1"' in page


def test_who_looked_at_a_person(
    sign_in: SignIn, customer: Customer, api: Api, db: Database
) -> None:
    person = enrol(api, customer)
    support = sign_in(Role.SUPPORT)
    place = f"/console/accounts/{customer.account_id}/people/{person}"
    support.open(place).send(f"{place}/open", reason="caller_on_the_line", case="4711")
    admin = sign_in(Role.ADMIN).open(trail_of(customer, f"?person={person}"))
    found = rows(admin.page)
    assert [row[1:3] for row in found] == [
        ["Ana Ruiz (of the service)", "read a member's record"],
        ["Ana Ruiz (of the service)", "opened a person's record"],
        ["Benefits feed", "created a member"],
    ]
    assert "case 4711" in found[1][4]
    assert f"<title>Who looked at person {person}" in admin.page


def test_the_trail_of_a_file(sign_in: SignIn, customer: Customer, desk: Desk) -> None:
    file = desk.load(csv_of([row(1)]))
    admin = sign_in(Role.ADMIN).open(trail_of(customer, f"?file={file.id}"))
    assert [row[2] for row in rows(admin.page)] == ["sent a file that is done", "sent a file"]
    assert "1 created" in admin.page


@pytest.mark.parametrize("of", ["user", "person", "file"])
def test_another_accounts_things_are_unknown(
    sign_in: SignIn, customer: Customer, db: Database, api: Api, other: Desk, of: str
) -> None:
    theirs = other.customer
    ids = {
        "person": enrol(api.as_(theirs.token), theirs, 9),
        "file": other.load(csv_of([row(2)])).id,
    }
    sign_in(Role.EDITOR, account_id=theirs.account_id)
    ids["user"] = 1
    admin = sign_in(Role.ADMIN)
    answers = []
    for id_ in (ids[of], 987_654):
        admin.open(trail_of(customer, f"?{of}={id_}"))
        text = re.sub(r"Request [0-9a-f]+|value=.[0-9]+.", "", admin.page)
        answers.append((admin.status, text))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert admin.open(trail_of(theirs)).status == 404


@pytest.mark.parametrize(
    "query", ["?user=x", "?person=-1", "?file=1e3", "?before=x", f"?user={9**30}"]
)
def test_wrong_numbers_are_told(sign_in: SignIn, customer: Customer, query: str) -> None:
    admin = sign_in(Role.ADMIN).open(trail_of(customer, query))
    assert (admin.status, "must be a number" in admin.page) == (422, True)
    assert admin.open(trail_of(customer, "?user=1&person=1")).status == 422


def test_an_auditor_gets_from_an_external_id_to_who_looked(
    sign_in: SignIn, customer: Customer, api: Api
) -> None:
    person = enrol(api, customer)
    auditor = sign_in(Role.AUDITOR)
    place = f"/console/accounts/{customer.account_id}/people"
    auditor.open(place).send(place, external_id="AB 000001")
    assert f"/people/{person}" not in auditor.page
    link = f"{trail_of(customer)}?person={person}"
    assert f'<a href="{link}">who looked</a>' in auditor.page
    assert rows(auditor.open(link).page)[-1][2] == "created a member"
    assert f"/people/{person}" not in auditor.page


def test_an_auditor_reads_the_trail_of_all(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    other = make_customer(db, name="Other Health")
    note(
        db,
        AuditEntry("plan.changed", "cli:olga", "r1", other.account_id, 2),
        AuditEntry("database.migrated", "cli:olga", "r2"),
    )
    auditor = sign_in(Role.AUDITOR).open("/console/trail")
    found = {row[-1]: row for row in rows(auditor.page)}
    assert found["r1"][1:5] == [
        "olga, at the command line",
        "changed a plan",
        "Plan 2",
        "Other Health",
    ]
    assert found["r2"][1:5] == ["olga, at the command line", "migrated the database", "", ""]
    assert f'href="/console/accounts/{other.account_id}/trail"' in auditor.page
    assert sign_in(Role.ADMIN).open(trail_of(other)).status == 404


def test_an_account_is_told_nothing_of_others_and_nothing_that_was_typed() -> None:
    detail = {"taken_today": 4, "held_by": {"77": 4}, "reference": "Robin Sample", "name": "Robin"}
    assert describe_detail(detail) == "values today 4"
    assert describe_detail({"counts": {"created": 1200, "refused": 0}}) == "result 1,200 created"
    assert describe_detail({"fields": [f"f{n}" for n in range(12)]}).endswith("f9, …")
    assert describe_detail({"case": "9" * 100}) == "case " + "9" * 64
    assert describe_detail(None) == ""
    tried = describe_detail({"counts": {"created": 2}, "dry_run": True})
    assert tried == "only tried: yes, result 2 created"


def calls() -> Iterator[ast.Call]:
    """The calls that write entries, by the names of what they call."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                if name == "AuditEntry" or WRITERS.fullmatch(name):
                    yield node


def written_actions() -> set[str]:
    """The actions that the program writes: the texts of its calls, and those that it puts together."""
    texts = {
        part.value
        for call in calls()
        for given in call.args
        for part in ast.walk(given)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    written = {text for text in texts if re.fullmatch(r"[a-z_]+\.[a-z_]+", text)}
    written |= {f"eligibility.{each}" for each in Outcome if each is not Outcome.UNCHANGED}
    written |= {f"file.{each}" for each in (FileState.DONE, FileState.FAILED, FileState.HELD)}
    written |= {f"account.{each}" for each in ("suspended", "resumed", "closed")}
    written |= {"demo.history_begun", "demo.history_made", "audit.read"}
    return written - {"file.chunk"}  # a span of the tracing


def test_every_action_has_words() -> None:
    assert written_actions() == set(ACTIONS)
    for action, words in ACTIONS.items():
        assert words[0].islower(), action
        assert len(words) < 50, action


def test_names_are_escaped(sign_in: SignIn, customer: Customer, db: Database) -> None:
    note(db, AuditEntry("<b>x</b>", "<i>me</i>", "<u>", customer.account_id, 1, {"case": "<s>"}))
    page = sign_in(Role.ADMIN).open(trail_of(customer)).page
    for tag in ("<b>x", "<i>me", "<u>", "<s>"):
        assert tag not in page


def test_a_browser_without_a_session_is_asked_to_sign_in(browsers: Any, customer: Customer) -> None:
    browser: Browser = browsers()
    assert browser.open(trail_of(customer)).path.startswith("/console/sign-in")


def test_an_auditor_is_led_from_the_accounts_to_their_trails(
    sign_in: SignIn, customer: Customer
) -> None:
    auditor = sign_in(Role.AUDITOR).open("/console/accounts")
    assert f'href="{trail_of(customer)}"' in auditor.page
    assert auditor.open(trail_of(customer)).status == 200
    support = sign_in(Role.SUPPORT).open("/console/accounts")
    assert f'href="/console/accounts/{customer.account_id}/files"' in support.page

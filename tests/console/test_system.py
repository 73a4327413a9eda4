"""System: each part with its state and what to do, what waits, the check, and the list of accounts."""

import inspect
import re
from datetime import timedelta

import pytest
from sqlalchemy import insert

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.console import system, system_words
from frontdesk.db import Database, checks
from frontdesk.db.checks import CheckFailure
from frontdesk.db.engine import database_time
from frontdesk.errors import Unavailable
from frontdesk.events.tables import webhook_endpoints
from frontdesk.invitations import save_worker_status
from frontdesk.invitations.delivery_hold import hold
from frontdesk.invitations.model import HoldReason, WorkerStatus
from frontdesk.system import problems, state
from frontdesk.users.model import Role
from tests.conftest import Api, SetClock
from tests.console.browsing import Browser, words_of
from tests.console.conftest import SignIn
from tests.console.held import hold_file
from tests.db.statements import statements
from tests.factories import NOW, Customer, make_customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.queues.feed import JOINED, event, feed, make_clinic

REFRESH = {"X-Frontdesk-Refresh": "timer"}
PAGE = "/console/system"
CHECK = f"{PAGE}/check"
ACCOUNTS = f"{PAGE}/accounts"
RUNBOOK = f"{PAGE}/runbook"


@pytest.fixture
def operator(sign_in: SignIn, clock: SetClock) -> Browser:
    """Signed in, which leads to System; what that page has read is old by now."""
    browser = sign_in(Role.OPERATOR)
    clock.advance(5.1)
    return browser


def table(page: str, name: str) -> list[list[str]]:
    """The rows of a table of the page, as text."""
    found = re.search(rf'aria-label="Table: {name}".*?</table>', page, re.DOTALL)
    if found is None:
        return []
    cells = (
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", each, re.DOTALL)
        for each in re.findall(r"<tr>(.*?)</tr>", found[0], re.DOTALL)[1:]
    )
    return [[words_of(cell) for cell in each] for each in cells]


def parts(page: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(rest) for name, *rest in table(page, "Parts")}


def sees_worker(db: Database, *, relay_up: bool | None = True) -> None:
    with db.write() as tx:
        save_worker_status(tx, WorkerStatus(relay_up, 2.0), now=database_time(tx))


def test_the_runbook_is_linked_at_the_section_of_each_alert(operator: Browser) -> None:
    source = inspect.getsource(system_words)
    sections = set(re.findall(r'"(Frontdesk\w+)"', source)) | {"FrontdeskFeedSilent"}
    assert len(sections) > 7
    links = re.findall(rf'href="({RUNBOOK}#\w+)"', operator.open(PAGE).page)
    assert f"{RUNBOOK}#frontdeskworkersilent" in links
    runbook = operator.open(RUNBOOK).page
    for section in sections:
        assert f'<h2 id="{section.lower()}">{section}</h2>' in runbook
    assert ".md" not in re.findall(r'href="([^"]*)"', runbook)
    assert 'href="#frontdeskdown"' in runbook


@pytest.mark.parametrize("role", Role)
def test_operators_only(sign_in: SignIn, role: Role) -> None:
    browser = sign_in(role)
    may = role is Role.OPERATOR
    token = browser.open("/console/me").form("/console/me")["token"]
    for path in (PAGE, ACCOUNTS, RUNBOOK):
        browser.open(path)
        assert browser.status == (200 if may else 403), path
        assert (f'href="{PAGE}"' in browser.page) == may
    assert browser.open(PAGE, **REFRESH).status == (200 if may else 403)
    browser.post(CHECK, {"token": token})
    assert browser.status == (200 if may else 403)


def test_the_entrance_leads_each_user_of_the_installation_to_the_first_place(
    sign_in: SignIn,
) -> None:
    places = {
        Role.OPERATOR: PAGE,
        Role.AUDITOR: "/console/trail",
        Role.SUPPORT: "/console/accounts",
    }
    for role, path in places.items():
        assert sign_in(role).open("/console").path == path


def test_each_part_has_a_state_in_words_and_what_to_do(
    operator: Browser, db: Database, clock: SetClock, config: Config
) -> None:
    found = parts(operator.open(PAGE).page)
    assert found["Database"][0] == "● answers"
    assert ("SQLite" if db.is_sqlite else "PostgreSQL") in found["Database"][1]
    assert ("Disk" in found) == db.is_sqlite
    assert found["Workers"][0] == "▲ none"
    assert found["Workers"][2] == "Runbook, FrontdeskWorkerSilent frontdesk worker"
    assert found["Delivery"] == ("◌ no worker", "", "")
    assert found["Files"][:2] == ("◌ no worker", "0 wait, 0 run")
    assert "Held files" not in found
    sees_worker(db)
    clock.advance(5.1)
    found = parts(operator.open(PAGE).page)
    assert found["Workers"][0] == "● at work"
    assert found["Delivery"] == ("● goes on", "", "")
    assert found["Files"][:2] == ("● are loaded", "0 wait, 0 run")


def test_what_is_wrong_is_told(operator: Browser, db: Database, clock: SetClock) -> None:
    sees_worker(db, relay_up=False)
    with db.write() as tx:
        hold(tx, HoldReason.OLDER)
    found = parts(operator.open(PAGE).page)
    assert found["Delivery"] == (
        "▲ held",
        "a backup was restored over the database",
        "Runbook, FrontdeskDeliveryHeld frontdesk invitations release",
    )
    assert found["Relay"][0] in ("▲ down", "▲ not set")


def test_files_that_wait_are_told_by_account(
    operator: Browser, desk: Desk, clock: SetClock, customer: Customer, db: Database
) -> None:
    sees_worker(db)
    hold_file(desk)
    desk.hand_in(csv_of([row(1)]))
    desk.hand_in(csv_of([row(2)]))
    page = operator.open(PAGE).page
    name = table(page, "What waits, by account")[0][0]
    assert table(page, "What waits, by account") == [[name, "2", "1", "0"]]
    assert f'href="/console/accounts/{customer.account_id}/files"' in page
    found = parts(page)
    assert found["Files"][1] == "2 wait, 0 run"
    assert found["Held files"][0] == "▲ 1"
    with db.write() as tx:
        set_state(tx, customer.account_id, AccountState.SUSPENDED, now=NOW)
    clock.advance(29 * 60)
    assert parts(operator.open(PAGE).page)["Files"][0] == "● are loaded"
    clock.advance(60)
    page = operator.open(PAGE).page
    assert parts(page)["Files"][:2] == ("▲ wait", "2 wait, 0 run; the oldest waits for 30 min")
    assert "suspended or closed: they wait" in page


def test_mails_that_wait_are_counted_to_a_bound(
    operator: Browser, api: Api, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MOST_COUNTED", 2)
    for number in range(3):
        body = member_body(number, invite_immediately=True)
        api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", body)
    [shown] = table(operator.open(PAGE).page, "What waits, by account")
    assert shown[3] == "2"


def test_the_largest_are_shown_and_the_others_counted(
    operator: Browser, db: Database, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MOST_ROWS", 2)
    for number in range(4):
        desk = Desk(db, make_customer(db, name=f"Customer {number}"), clock)
        for other in range(number):
            desk.hand_in(csv_of([row(10 * number + other)]))
    page = operator.open(PAGE).page
    shown = [each[:2] for each in table(page, "What waits, by account")]
    assert shown == [["Customer 3", "3"], ["Customer 2", "2"]]
    assert "And 1 other." in page


def test_feeds_have_their_age(operator: Browser, db: Database, clock: SetClock) -> None:
    clinic = make_clinic(db, "Main Street")
    feed(db, event("j", JOINED, 0, plan_id=clinic.plan_ids[0], visit="v"))
    shown = table(operator.open(PAGE).page, "Queue events")[0]
    assert shown[1:] == ["● comes", "within the last half hour"]
    clock.advance(29 * 60)
    operator.open(PAGE)
    clock.advance(2 * 60)
    shown = table(operator.open(PAGE).page, "Queue events")[0]
    assert shown[1] == "▲ silent"


def test_a_refresh_that_finds_nothing_new_is_304(
    operator: Browser, db: Database, clock: SetClock
) -> None:
    tag = operator.open(PAGE).answer.headers["etag"]
    assert f"data-tag='{tag}'" in operator.page
    assert 'id="system" data-refresh' in operator.page
    clock.advance(5.1)
    same = operator.open(PAGE, **REFRESH, **{"If-None-Match": tag})
    assert same.status == 304
    assert same.answer.headers["x-frontdesk-as-of"] == "12:00:10"
    sees_worker(db)
    clock.advance(5.1)
    assert operator.open(PAGE, **REFRESH, **{"If-None-Match": tag}).status == 200


def test_the_state_is_read_once_for_all_viewers(sign_in: SignIn, app: App, clock: SetClock) -> None:
    viewers = [sign_in(Role.OPERATOR), sign_in(Role.OPERATOR, Role.AUDITOR)]
    clock.advance(60)  # what was read when they signed in is too old
    with statements(app.db, "FROM worker_status") as read:
        for _ in range(3):
            for viewer in viewers:
                viewer.open(PAGE, **REFRESH)
                viewer.open(PAGE)
    assert len(read) == 1


def test_a_look_writes_nothing_and_asks_no_relay(
    operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AssertionError("a look has done this")

    monkeypatch.setattr(checks, "write_a_little", fails)
    monkeypatch.setattr(problems, "relay_failures", fails)
    monkeypatch.setattr(problems, "lock_failures", fails)
    assert operator.open(PAGE).status == 200


def test_the_check_says_what_the_command_says(
    operator: Browser, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = CheckFailure("The disk is made of <cheese>.", "Buy another one.")
    asked = []

    def failures(*given: object, **options: object) -> list[CheckFailure]:
        asked.append(options)
        return [wrong] if len(asked) == 1 else []

    monkeypatch.setattr(problems, "relay_failures", failures)
    operator.open(PAGE).send(CHECK)
    assert operator.path == CHECK
    assert "The disk is made of &lt;cheese&gt;. Buy another one." in operator.page
    assert "data-refresh" not in operator.page
    operator.send(CHECK)
    assert len(asked) == 1
    clock.advance(5.1)
    operator.send(CHECK)
    assert len(asked) == 2
    assert asked[0] == {"step_seconds": 1.0}
    assert operator.open(CHECK).path == PAGE


def test_problems_are_shown_at_once(operator: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [CheckFailure("The clock is wrong.", "Set it.", is_warning=True)]
    monkeypatch.setattr(state, "problems", lambda *_, **__: found)
    page = operator.open(PAGE).page
    assert "The clock is wrong. Set it." in page
    assert '<span class="state warn">' in page


def test_a_database_that_does_not_answer_is_told(
    operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("The database does not answer.")

    monkeypatch.setattr(system, "read_system", away)
    operator.open(PAGE)
    assert (operator.status, "Nothing was changed" in operator.page) == (503, True)


def test_accounts_are_listed_by_the_page(
    operator: Browser, db: Database, customer: Customer, api: Api, desk: Desk
) -> None:
    made = [make_customer(db, name=f"Customer {number}") for number in range(60)]
    api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(1))
    desk.hand_in(csv_of([row(2)]))
    first = table(operator.open(ACCOUNTS).page, "Accounts")
    assert len(first) == 50
    assert first[0][1:7] == [str(customer.account_id), "● active", "1", "1", "0", "1"]
    following = re.search(r'<a href="([^"]+)" rel="next">', operator.page)
    assert following is not None
    rest = table(operator.open(following[1]).page, "Accounts")
    assert len(rest) == 11
    assert rest[-1][0] == "Customer 59"
    assert f'href="/console/accounts/{made[-1].account_id}/now"' in operator.page
    assert operator.open(ACCOUNTS + "?after=999999").status == 200
    assert "No further account." in operator.page
    assert operator.open(ACCOUNTS + "?after=x").status == 422


def test_the_lists_links_lead_where_operators_may_go(operator: Browser, customer: Customer) -> None:
    links = re.findall(r'href="(/console/accounts/[^"]+)"', operator.open(ACCOUNTS).page)
    assert len(links) == 2
    for link in links:
        assert operator.open(link).status == 200


def test_webhooks_that_are_behind_are_told(
    operator: Browser, db: Database, customer: Customer, clock: SetClock
) -> None:
    since = NOW - timedelta(hours=2)
    with db.write() as tx:
        place = {"place_xid": 0, "place_id": 0, "epoch": 0}
        times = dict.fromkeys(("next_at", "turn_at", "created_at", "updated_at"), since)
        known = {"url": "https://a.example/b", "event_types": [], "salt": "s", "state": "active"}
        failing = {"attempts": 3, "failing_since": since, "last_error": "timeout"}
        own = {"account_id": customer.account_id, "old_salts": []}
        tx.execute(insert(webhook_endpoints).values(place | times | known | failing | own))
    [shown] = table(operator.open(PAGE).page, "Webhooks that are behind")
    assert shown[2] == "▲ fails"
    assert shown[3:] == ["0", "Nov 20 10:00", "timeout"]
    assert "a.example" not in operator.page

"""Account, webhooks: an admin makes, changes, pauses, rolls, tests, replays and deletes endpoints."""

import re

import pytest

from frontdesk import events
from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.events.delivery import Progress, save
from frontdesk.events.model import EndpointState
from frontdesk.reach import EVERY
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.factories import Customer, make_customer

URL = "https://hooks.example.com/frontdesk"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")
ACTIONS = ("change", "pause", "resume", "rotate", "test", "replay", "delete")


def place_of(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}/account/webhooks"


def secret_in(browser: Browser) -> str:
    [secret] = SECRET.findall(browser.page.replace("&#43;", "+"))
    return str(secret)


def made_by(browser: Browser, customer: Customer, **fields: str) -> str:
    """The page of an endpoint that the form has made."""
    place = place_of(customer)
    browser.open(place).send(place, **({"url": URL} | fields))
    assert browser.status == 200, browser.page
    found = re.search(rf"{place}/\d+", browser.page)
    assert found is not None
    return found[0]


def actions(db: Database) -> list[str]:
    return [entry["action"] for entry in db.ask(lambda tx: list_entries(tx, EVERY))]


def test_an_endpoint_is_made_and_its_secret_is_in_that_answer_only(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    place = place_of(customer)
    fields = browser.open(place).form(place) | {"url": URL, "type.member.created": "yes"}
    browser.post(place, fields)
    secret = secret_in(browser)
    assert browser.answer.headers["cache-control"] == "no-store"
    [made] = db.ask(lambda tx: events.list_endpoints(tx, customer.account_id))
    assert (made.url, made.event_types, made.state) == (
        URL,
        ["member.created"],
        EndpointState.UNVERIFIED,
    )
    for path in (place, f"{place}/{made.id}"):
        assert not SECRET.search(browser.open(path).page)
    browser.post(place, fields)
    assert (browser.status, "Shown already" in browser.page) == (409, True)
    browser.open(f"{place}/{made.id}").send(f"{place}/{made.id}/delete")
    browser.post(place, fields)
    assert (browser.status, "Shown already" in browser.page) == (409, True), "also after its end"
    assert db.ask(lambda tx: events.list_endpoints(tx, customer.account_id)) == []
    assert secret not in str(db.ask(lambda tx: list_entries(tx, EVERY, limit=1000)))


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "http://hooks.example.com"},
        {"url": "https://10.0.0.1/x"},
        {"url": "https://a:b@hooks.example.com/"},
        {"url": ""},
        {"url": URL, "type.member.eaten": "yes"},
        {"url": URL, "type.webhook.test": "yes"},
    ],
)
def test_an_address_that_the_api_refuses_is_refused_here(
    sign_in: SignIn, customer: Customer, db: Database, fields: dict[str, str]
) -> None:
    browser = sign_in(Role.ADMIN)
    place = place_of(customer)
    browser.open(place).send(place, **fields)
    assert browser.status == 422
    assert db.ask(lambda tx: events.list_endpoints(tx, customer.account_id)) == []
    page = made_by(browser, customer)
    browser.open(page).send(f"{page}/change", **fields)
    assert browser.status == 422


def test_an_endpoint_is_changed_paused_and_resumed(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    page = made_by(browser, customer, paused="yes")
    assert "somebody paused it" in browser.open(page).page
    browser.send(f"{page}/resume")
    assert "Address not verified yet" in browser.page
    browser.send(f"{page}/test")
    browser.send(f"{page}/pause")
    fields = browser.form(f"{page}/change")
    browser.post(f"{page}/change", fields | {"url": f"{URL}/2", "type.file.done": "yes"})
    assert (browser.status, f"{URL}/2" in browser.page) == (200, True)
    browser.post(f"{page}/change", fields | {"url": f"{URL}/3"})
    assert (browser.status, "changed while the page was open" in browser.page) == (409, True)
    assert f"{URL}/3" in browser.form(f"{page}/change")["url"], "what was typed stays"
    browser.open(page).post(f"{page}/test", browser.form(f"{page}/change"))
    assert (browser.status, "paused" in browser.page) == (409, True)
    assert actions(db)[:5] == [
        *("webhook.changed", "webhook.changed", "webhook.tested"),
        *("webhook.changed", "webhook.created"),
    ]


def test_a_rolled_secret_is_shown_once_and_signs_beside_the_one_before(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    page = made_by(browser, customer)
    first = secret_in(browser)
    fields = browser.open(page).form(f"{page}/rotate")
    browser.post(f"{page}/rotate", fields)
    assert secret_in(browser) != first
    browser.post(f"{page}/rotate", fields)
    assert (browser.status, SECRET.search(browser.page)) == (409, None)
    [endpoint] = db.ask(lambda tx: events.list_endpoints(tx, customer.account_id))
    assert len(endpoint.old_secrets) == 1


def test_events_are_sent_again_by_id_or_since_a_time(sign_in: SignIn, customer: Customer) -> None:
    browser = sign_in(Role.ADMIN)
    page = made_by(browser, customer)
    for fields in ({}, {"event_id": "evt_1"}, {"since": "yesterday"}, {"event_id": "evt_9_9"}):
        browser.open(page).send(f"{page}/replay", **fields)
        assert browser.status in (409, 422), fields
    assert "role=" in browser.page


def test_another_accounts_endpoint_looks_like_an_unknown_one(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    other = make_customer(db, name="Other Health")
    theirs = made_by(sign_in(Role.ADMIN, account_id=other.account_id), other)
    number = theirs.rpartition("/")[2]
    sign = sign_in(Role.ADMIN, Role.VIEWER)
    place = place_of(customer)
    sent = sign.open(place).form(place) | {"url": URL, "since": "2026-11-20T12:00:00Z"}
    for action in ("", *(f"/{each}" for each in ACTIONS)):
        answers = []
        for endpoint_id in (number, "999999"):
            path = f"{place}/{endpoint_id}{action}"
            if action:
                sign.post(path, sent)
            else:
                sign.open(path)
            answers.append((sign.status, re.sub(r"Request [0-9a-f]+", "", sign.page)))
        assert answers[0] == answers[1], action
        assert answers[0][0] == 404
    assert len(db.ask(lambda tx: events.list_endpoints(tx, other.account_id))) == 1


def test_a_failing_endpoint_says_since_when_and_why(
    sign_in: SignIn, customer: Customer, db: Database, clock: SetClock
) -> None:
    browser = sign_in(Role.ADMIN)
    page = made_by(browser, customer)
    with db.write() as tx:
        [claimed] = events.claim_due(tx, [int(page.rpartition("/")[2])], clock())
        progress = Progress(claimed.place, delivered=False, error="timeout")
        assert save(tx, claimed, progress, now=clock(), ends=True) is not None
    assert "no whole answer within 10 s, after 1 attempt of" in browser.open(page).page
    assert "timeout" in browser.open(place_of(customer)).page
    overview = f"/console/accounts/{customer.account_id}/account"
    assert f'href="{page}"' in browser.open(overview).page

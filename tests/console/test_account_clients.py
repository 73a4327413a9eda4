"""Account, API clients: an admin makes, rolls and ends them; a secret stands in one answer only."""

import re

import pytest

from frontdesk.access import list_clients
from frontdesk.access.accounts import list_secrets
from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.reach import EVERY, Reach
from frontdesk.users.directory import secret_seen_by
from frontdesk.users.model import Role
from tests.conftest import Api, SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.factories import Customer, make_customer

SECRET = re.compile(r"<dt>client_secret</dt><dd><code>([\w-]{43})</code>")
SCOPES = {"scope.plans:read": "yes", "scope.eligibility:write": "yes"}


def place_of(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}/account/clients"


def secret_in(browser: Browser) -> str:
    found = SECRET.search(browser.page)
    assert found is not None, browser.page
    return found[1]


def token_status(api: Api, client_id: str, secret: str) -> int:
    body = {"client_id": client_id, "client_secret": secret, "grant_type": "client_credentials"}
    return int(api.http.post("/oauth/token", json=body).status_code)


def made_by(browser: Browser, customer: Customer, **fields: str) -> tuple[str, str]:
    """The client_id and the secret of a client that the form has made."""
    place = place_of(customer)
    browser.open(place).send(place, **({"name": "Nightly upload"} | SCOPES | fields))
    assert browser.status == 200, browser.page
    found = re.search(r"<code>([0-9a-f]{32})</code>", browser.page)
    assert found is not None
    return found[1], secret_in(browser)


def test_a_client_is_made_and_its_secret_is_in_that_answer_only(
    sign_in: SignIn, api: Api, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    place = place_of(customer)
    fields = browser.open(place).form(place) | {"name": "Nightly upload"} | SCOPES
    browser.post(place, fields)
    secret = secret_in(browser)
    assert browser.answer.headers["cache-control"] == "no-store"
    assert "etag" not in browser.answer.headers
    [_, made] = db.ask(lambda tx: list_clients(tx, Reach.of(customer.account_id)))
    assert (made.name, sorted(made.scopes)) == (
        "Nightly upload",
        ["eligibility:write", "plans:read"],
    )
    assert token_status(api, made.client_id, secret) == 200
    assert secret not in str(db.ask(lambda tx: list_entries(tx, EVERY, limit=1000)))
    for path in (place, f"{place}/{made.client_id}"):
        assert secret not in browser.open(path).page
        assert "Nightly upload" in browser.page
    browser.post(place, fields)
    assert (browser.status, "Shown already" in browser.page) == (409, True)
    assert secret not in browser.page
    assert len(db.ask(lambda tx: list_clients(tx, EVERY))) == 2
    [created] = [
        entry
        for entry in db.ask(lambda tx: list_entries(tx, EVERY))
        if entry["action"] == "client.created" and entry["subject_id"] == made.id
    ]
    seen = db.ask(lambda tx: secret_seen_by(tx, made.client_id))
    assert [created["actor"]] == [f"user:{user_id}" for user_id in seen]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "Nightly", "days": "0"},
        {"name": "Nightly", "days": "3651"},
        {"name": "Nightly", "days": "soon"},
        {"name": "Nightly", "scope.operator": "yes"},
        {"name": "Nightly", "scope.everything": "yes"},
        {"name": "Nightly", "number": ""},
    ],
)
def test_a_form_with_a_fault_makes_nothing_and_keeps_what_was_typed(
    sign_in: SignIn, customer: Customer, db: Database, fields: dict[str, str]
) -> None:
    browser = sign_in(Role.ADMIN)
    place = place_of(customer)
    browser.open(place).send(place, **(SCOPES | fields))
    assert browser.status == 422
    assert browser.form(place).get("scope.plans:read") == "yes"
    assert len(db.ask(lambda tx: list_clients(tx, EVERY))) == 1


def test_a_client_without_a_scope_is_not_made(sign_in: SignIn, customer: Customer) -> None:
    browser = sign_in(Role.ADMIN)
    place = place_of(customer)
    browser.open(place).send(place, name="Nightly upload")
    assert (browser.status, "must be one or more of" in browser.page) == (422, True)


def test_a_rolled_secret_leaves_the_one_before_or_ends_it(
    sign_in: SignIn, api: Api, customer: Customer
) -> None:
    browser = sign_in(Role.ADMIN)
    client_id, first = made_by(browser, customer)
    page = f"{place_of(customer)}/{client_id}"
    browser.open(page).send(f"{page}/rotate", others="keep")
    second = secret_in(browser)
    assert [token_status(api, client_id, each) for each in (first, second)] == [200, 200]
    fields = browser.open(page).form(f"{page}/rotate") | {"others": "end"}
    browser.post(f"{page}/rotate", fields)
    third = secret_in(browser)
    assert [token_status(api, client_id, each) for each in (first, second, third)] == [
        *(401, 401),
        200,
    ]
    browser.post(f"{page}/rotate", fields)
    assert (browser.status, "Shown already" in browser.page) == (409, True)
    assert token_status(api, client_id, third) == 200
    browser.open(page).send(f"{page}/rotate")
    assert browser.status == 422


def test_secrets_tokens_and_clients_end(
    sign_in: SignIn, api: Api, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    client_id, secret = made_by(browser, customer, days="30")
    page = f"{place_of(customer)}/{client_id}"
    [stored] = db.ask(lambda tx: list_secrets(tx, EVERY, client_id))
    assert stored.expires_at is not None
    fields = browser.open(page).form(f"{page}/end-secret")
    browser.post(f"{page}/end-secret", fields)
    assert browser.status == 200
    assert token_status(api, client_id, secret) == 401
    browser.post(f"{page}/end-secret", fields)
    assert (browser.status, "has ended while the page was open" in browser.page) == (409, True)
    browser.send(f"{page}/end-tokens")
    rolled = browser.form(f"{page}/rotate") | {"others": "keep"}
    browser.send(f"{page}/revoke")
    assert (browser.status, "Revoked" in browser.page) == (200, True)
    browser.post(f"{page}/rotate", rolled)  # of a page that is still open in another window
    assert (browser.status, "has ended while the page was open" in browser.page) == (409, True)
    assert "Roll the secret" not in browser.page
    entries = db.ask(lambda tx: list_entries(tx, EVERY))
    actions = [each["action"] for each in entries if each["action"].startswith("client.")]
    assert actions[:3] == ["client.revoked", "client.tokens_revoked", "client.secret_revoked"]


def test_another_accounts_client_looks_like_an_unknown_one(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    other = make_customer(db, name="Other Health")
    browser = sign_in(Role.ADMIN)
    place = place_of(customer)
    sent = browser.open(place).form(place) | {"others": "keep", "secret": "1"}
    for action in ("", "/rotate", "/end-secret", "/end-tokens", "/revoke"):
        answers = []
        for client_id in (other.client_id, "0" * 32, "%00"):
            path = f"{place}/{client_id}{action}"
            if action:
                browser.post(path, sent)
            else:
                browser.open(path)
            page = re.sub(r"Request [0-9a-f]+", "", browser.page)
            answers.append((browser.status, page))
        assert answers[0] == answers[1] == answers[2], action
        assert answers[0][0] == 404
    [theirs] = db.ask(lambda tx: list_clients(tx, Reach.of(other.account_id)))
    assert theirs.revoked_at is None
    assert len(db.ask(lambda tx: list_secrets(tx, EVERY, other.client_id))) == 1


@pytest.mark.parametrize("role", [each for each in Role if each is not Role.ADMIN])
def test_no_other_role_sees_clients(sign_in: SignIn, customer: Customer, role: Role) -> None:
    browser = sign_in(role).open(place_of(customer))
    assert (browser.status, "It is for: admin" in browser.page) == (403, True)
    assert f"/console/accounts/{customer.account_id}/account" not in browser.page


def test_an_account_has_so_many_clients(
    sign_in: SignIn, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.access.accounts.MOST_CLIENTS", 2)
    browser = sign_in(Role.ADMIN)
    made_by(browser, customer)
    place = place_of(customer)
    browser.open(place).send(place, **({"name": "One more"} | SCOPES))
    assert (browser.status, "revoke some" in browser.page) == (422, True)


def test_the_last_token_of_a_client_is_shown(
    sign_in: SignIn, api: Api, customer: Customer, clock: SetClock
) -> None:
    browser = sign_in(Role.ADMIN)
    client_id, secret = made_by(browser, customer)
    assert token_status(api, client_id, secret) == 200
    page = browser.open(place_of(customer)).page
    row = page[page.index(f"<code>{client_id}") :]
    assert f"{clock():%Y-%m-%d}" in row[: row.index("</tr>")]

"""What callers of a suspended or closed account see, and that others notice nothing."""

from typing import Any

import pytest

from frontdesk.access.accounts import close_account, resume_account, suspend_account
from frontdesk.access.callers import CACHE_SECONDS
from frontdesk.audit import AuditQuery, list_entries
from frontdesk.db import Database
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, make_operator, member_body


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the time pass for which a token is good from memory."""
    seconds = [0.0]
    monkeypatch.setattr("frontdesk.access.callers.monotonic", lambda: seconds[0])

    def wait() -> None:
        seconds[0] += CACHE_SECONDS

    return wait


def test_a_suspended_account_is_refused_until_it_is_resumed(
    api: Api, db: Database, customer: Customer, later: Any
) -> None:
    other = api.as_(make_customer(db, name="Other").token)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert api.post(path, member_body()).status_code == 201
    with db.write() as tx:
        suspend_account(tx, customer.account_id)
    later()
    for answer in (api.get("/v2/plans"), api.post(path, member_body(2))):
        assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (403, "suspended")
        assert answer.json()["instance"] == answer.request.url.path
    assert other.get("/v2/plans").status_code == 200
    with db.write() as tx:
        resume_account(tx, customer.account_id)
    later()
    assert api.post(path, member_body(2)).status_code == 201


def test_a_suspended_accounts_client_gets_no_new_token_until_the_account_is_resumed(
    api: Api, db: Database, customer: Customer
) -> None:
    form = {"client_id": customer.client_id, "client_secret": customer.client_secret}
    with db.write() as tx:
        suspend_account(tx, customer.account_id)
    for _ in range(12):  # with the right secret: no failed attempt that would be limited
        answer = api.http.post("/oauth/token", data=form | {"grant_type": "client_credentials"})
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert "suspended" in answer.json()["error_description"]
        assert "Basic" in answer.headers["WWW-Authenticate"]
    wrong = form | {"client_secret": "wrong", "grant_type": "client_credentials"}
    assert "suspended" not in api.http.post("/oauth/token", data=wrong).text
    assert api.http.post("/oauth/revoke", data=form | {"token": customer.token}).status_code == 200
    entries = db.ask(lambda tx: list_entries(tx, AuditQuery(action="token")))
    assert [entry["action"] for entry in entries] == ["token.revoked", *["token.refused"] * 13]
    assert [entry["detail"].get("reason") for entry in entries[2:]] == ["suspended"] * 12
    with db.write() as tx:
        resume_account(tx, customer.account_id)
    assert api.http.post("/oauth/token", data=form | {"grant_type": "client_credentials"}).status_code == 200


def test_a_closed_account_has_no_token_any_more(
    api: Api, db: Database, customer: Customer, clock: SetClock, later: Any
) -> None:
    with db.write() as tx:
        close_account(tx, customer.account_id, now=clock())
    later()
    assert api.get("/v2/plans").status_code == 401
    form = {"client_id": customer.client_id, "client_secret": customer.client_secret}
    answer = api.http.post("/oauth/token", data=form | {"grant_type": "client_credentials"})
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_monitoring_sees_and_reports_while_a_customer_is_suspended_or_closed(
    api: Api, db: Database, customer: Customer, clock: SetClock, later: Any
) -> None:
    operator = make_operator(db)
    monitoring = api.as_(operator.token)
    event = {"message_id": "<4711@mail.example.com>", "event": "delivered"}
    for stop in (suspend_account, lambda tx, account: close_account(tx, account, now=clock())):
        with db.write() as tx:
            stop(tx, customer.account_id)
        later()
        assert api.get("/v2/plans").status_code in (401, 403)
        assert monitoring.get("/metrics").status_code == 200
        assert monitoring.post("/operator/v1/email-events", {"events": [event]}).status_code == 200
        assert monitoring.post("/operator/v1/queue-events", {"events": []}).status_code == 207
        form = {"client_id": operator.client_id, "client_secret": operator.client_secret}
        issued = api.http.post("/oauth/token", data=form | {"grant_type": "client_credentials"})
        assert issued.json()["scope"] == "operator"

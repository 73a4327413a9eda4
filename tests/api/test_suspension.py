"""What callers of a suspended or closed account see, and that others notice nothing."""

from itertools import count
from typing import Any

import pytest

from frontdesk.access.accounts import set_state
from frontdesk.access.callers import CACHE_SECONDS
from frontdesk.access.model import AccountState
from frontdesk.db import Database
from tests.api.conftest import OAuth, Trail
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer, make_operator, member_body


@pytest.fixture(autouse=True)
def _no_token_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each look the time has passed for which a token is good from memory."""
    monkeypatch.setattr("frontdesk.access.callers.monotonic", count(step=CACHE_SECONDS).__next__)


def test_an_account_is_suspended_and_resumed(api: Api, db: Database, customer: Customer) -> None:
    other = api.as_(make_customer(db, name="Other").token)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert api.post(path, member_body()).status_code == 201
    with db.write() as tx:
        set_state(tx, customer.account_id, AccountState.SUSPENDED, now=NOW)
    for answer in (api.get("/v2/plans"), api.post(path, member_body(2))):
        assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (403, "suspended")
        assert answer.json()["instance"] == answer.request.url.path
    assert other.get("/v2/plans").status_code == 200
    with db.write() as tx:
        set_state(tx, customer.account_id, AccountState.ACTIVE, now=NOW)
    assert api.post(path, member_body(2)).status_code == 201


def test_suspended_clients_get_no_token(
    oauth: OAuth, db: Database, customer: Customer, trail: Trail
) -> None:
    with db.write() as tx:
        set_state(tx, customer.account_id, AccountState.SUSPENDED, now=NOW)
    for _ in range(12):  # with the right secret: no failed attempt that would be limited
        answer = oauth.token()
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert "suspended" in answer.json()["error_description"]
        assert "Basic" in answer.headers["WWW-Authenticate"]
    assert "suspended" not in oauth.token(client_secret="wrong").text
    assert oauth.revoke(customer.token).status_code == 200
    entries = trail("token")
    assert [entry["action"] for entry in entries] == [*["token.refused"] * 13, "token.revoked"]
    assert [entry["detail"].get("reason") for entry in entries[:12]] == ["suspended"] * 12
    with db.write() as tx:
        set_state(tx, customer.account_id, AccountState.ACTIVE, now=NOW)
    assert oauth.token().status_code == 200


def test_monitoring_never_stops(api: Api, oauth: OAuth, db: Database, clock: SetClock) -> None:
    operator = make_operator(db)
    customer = make_customer(db, name="Stopped")
    own: Any = {"client_id": operator.client_id, "client_secret": operator.client_secret}
    monitoring = api.as_(operator.token)
    stopped = api.as_(customer.token)
    for state, status in ((AccountState.SUSPENDED, 403), (AccountState.CLOSED, 401)):
        with db.write() as tx:
            set_state(tx, customer.account_id, state, now=clock())
        assert stopped.get("/v2/plans").status_code == status
        assert OAuth(api, customer).token().json()["error"] == "invalid_client"
        assert monitoring.get("/metrics").status_code == 200
        assert monitoring.post("/operator/v1/queue-events", {"events": []}).status_code == 207
        assert oauth.token(**own).json()["scope"] == "operator"

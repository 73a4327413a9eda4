"""The audit trail of tokens: issued, refused, limited, revoked; by whom and from which network, without a secret."""

from typing import Any

from frontdesk.audit import AuditQuery, list_entries
from frontdesk.db import Database
from tests.conftest import Api
from tests.factories import Customer


def trail(db: Database) -> list[dict[str, Any]]:
    return list(reversed(db.ask(lambda tx: list_entries(tx, AuditQuery(action="token")))))


def ask(api: Api, customer: Customer, *, path: str = "token", **form: str) -> Any:
    own = {"client_id": customer.client_id, "client_secret": customer.client_secret}
    return api.http.post(f"/oauth/{path}", data={"grant_type": "client_credentials"} | own | form)


def test_issued_and_revoked_tokens_are_recorded_once(api: Api, db: Database, customer: Customer) -> None:
    issued = ask(api, customer)
    token = issued.json()["access_token"]
    for _ in range(2):
        assert ask(api, customer, path="revoke", token=token).status_code == 200
    assert [entry["action"] for entry in trail(db)] == ["token.issued", "token.revoked"]
    entry = trail(db)[0]
    assert (entry["actor"], entry["account_id"]) == (customer.client_id, customer.account_id)
    assert entry["request_id"] == issued.headers["X-Request-Id"]
    assert set(entry["detail"]) == {"network"}
    assert len(entry["detail"]["network"]) == 16
    for secret in (token, customer.client_secret, "testclient"):
        assert secret not in str(trail(db))


def test_refusals_are_recorded_until_they_are_limited(api: Api, db: Database, customer: Customer) -> None:
    for _ in range(12):
        ask(api, customer, client_secret="wrong")
    actions = [entry["action"] for entry in trail(db)]
    assert actions == ["token.refused"] * 10 + ["token.limited"]
    assert {entry["actor"] for entry in trail(db)} == {customer.client_id}


def test_a_client_id_that_is_none_of_ours_is_not_repeated(api: Api, db: Database, customer: Customer) -> None:
    ask(api, customer, client_id="CANARY")
    [entry] = trail(db)
    assert (entry["action"], entry["actor"], entry["account_id"]) == ("token.refused", "unknown", None)
    assert "CANARY" not in str(entry)

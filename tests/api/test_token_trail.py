"""The audit trail of tokens: issued, refused, limited, revoked; by whom and from which network, without a secret."""

from tests.api.conftest import OAuth, Trail
from tests.factories import Customer


def test_issued_and_revoked_tokens_are_recorded_once(oauth: OAuth, trail: Trail, customer: Customer) -> None:
    issued = oauth.token()
    token = issued.json()["access_token"]
    for _ in range(2):
        assert oauth.revoke(token).status_code == 200
    entries = trail("token")
    assert [entry["action"] for entry in entries] == ["token.issued", "token.revoked"]
    assert (entries[0]["actor"], entries[0]["account_id"]) == (customer.client_id, customer.account_id)
    assert entries[0]["request_id"] == issued.headers["X-Request-Id"]
    assert set(entries[0]["detail"]) == {"network"}
    assert len(entries[0]["detail"]["network"]) == 16
    for secret in (token, customer.client_secret, "testclient"):
        assert secret not in str(entries)


def test_refusals_are_recorded_until_they_are_limited(oauth: OAuth, trail: Trail, customer: Customer) -> None:
    oauth.token(client_id="CANARY")
    for _ in range(12):
        oauth.token(client_secret="wrong")
    unknown, *known = trail("token")
    assert [entry["action"] for entry in (unknown, *known)] == ["token.refused"] * 11 + ["token.limited"]
    assert (unknown["actor"], unknown["account_id"], "CANARY" in str(unknown)) == ("unknown", None, False)
    assert {entry["actor"] for entry in known} == {customer.client_id}

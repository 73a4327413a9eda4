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
    for _ in range(12):
        oauth.token(client_secret="wrong")
    assert [entry["action"] for entry in trail("token")] == ["token.refused"] * 10 + ["token.limited"]
    assert {entry["actor"] for entry in trail("token")} == {customer.client_id}


def test_a_client_id_that_is_none_of_ours_is_not_repeated(oauth: OAuth, trail: Trail) -> None:
    oauth.token(client_id="CANARY")
    [entry] = trail("token")
    assert (entry["action"], entry["actor"], entry["account_id"]) == ("token.refused", "unknown", None)
    assert "CANARY" not in str(entry)

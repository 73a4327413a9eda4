"""`POST /oauth/revoke`, as a customer sees it (RFC 7009)."""

from typing import Any

import pytest

from frontdesk.access.accounts import get_client
from frontdesk.access.callers import issue_token
from frontdesk.db import Database
from tests.api.conftest import OAuth, as_json
from tests.api.test_oauth_token import by_basic, multipart
from tests.conftest import Api
from tests.factories import NOW, Customer, make_customer


def statuses(oauth: OAuth, *tokens: str) -> list[int]:
    return [oauth.caller.as_(token).get("/v2/plans").status_code for token in tokens]


@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "another"])
def test_a_revoked_token_ends_at_once(oauth: OAuth, api: Api, customer: Customer, hint: str | None) -> None:
    assert api.get("/v2/plans").status_code == 200
    for _ in range(2):
        answer = oauth.revoke(customer.token, token_type_hint=hint)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["Cache-Control"] == "no-store"
        assert api.get("/v2/plans").status_code == 401


@pytest.mark.parametrize("changes", [{"client_secret": "wrong"}, {"client_secret": ""}, {"client_id": "x"}])
def test_a_client_that_does_not_prove_itself_revokes_nothing(
    oauth: OAuth, customer: Customer, changes: Any
) -> None:
    answer = oauth.revoke(customer.token, **changes)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert answer.headers["Cache-Control"] == "no-store"
    assert oauth.caller.as_(customer.token).post("/oauth/revoke", data={"token": "x"}).status_code == 401
    assert statuses(oauth, customer.token) == [200]


@pytest.mark.parametrize("token", [None, ""])
def test_a_request_without_a_token_is_invalid(oauth: OAuth, token: str | None) -> None:
    answer = oauth.revoke(token)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.headers["Cache-Control"] == "no-store"


def test_json_multipart_and_http_basic_revoke_as_well(oauth: OAuth, customer: Customer, db: Database) -> None:
    with db.write() as tx:
        client = get_client(tx, customer.client_id)
        tokens = [issue_token(tx, client, client.scopes, now=NOW) for _ in range(3)]
    answers = [oauth.revoke(*each) for each in zip(tokens, (as_json, multipart, by_basic), strict=True)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert statuses(oauth, *tokens, customer.token) == [401, 401, 401, 200]


def test_another_clients_token_lives_on_and_is_answered_like_an_unknown_or_revoked_one(
    oauth: OAuth, api: Api, customer: Customer, db: Database
) -> None:
    other = OAuth(api, make_customer(db, name="Other"))
    for token in (customer.token, "unknown", "x" * 20_000, "пароль", "a b", "%00"):
        answer = other.revoke(token)
        assert (answer.status_code, answer.content) == (200, b"")
    assert statuses(oauth, customer.token) == [200]

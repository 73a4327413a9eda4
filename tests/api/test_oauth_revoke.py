"""`POST /oauth/revoke`, as a customer sees it (RFC 7009)."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.access.accounts import get_client
from frontdesk.access.callers import issue_token
from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config
from frontdesk.db import Database, open_database
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer

PATH = "/oauth/revoke"


@pytest.fixture
def stranger(api: Api) -> Api:
    """A caller without a token."""
    return api.as_(None)


@pytest.fixture
def other_process(config: Config, clock: SetClock) -> Iterator[TestClient]:
    """A second serving process on the same database."""
    with TestClient(build_asgi(App(config, open_database(config.database_url), clock))) as http:
        yield http


def revoke(caller: Api, customer: Customer, token: str, **more: str) -> Any:
    form = {"client_id": customer.client_id, "client_secret": customer.client_secret, "token": token}
    return caller.post(PATH, data=form | more)


@pytest.mark.parametrize(
    "hint", [{}, {"token_type_hint": "access_token"}, {"token_type_hint": "refresh_token"},
             {"token_type_hint": "another"}],
)  # fmt: skip
def test_a_revoked_token_is_refused_at_once(
    stranger: Api, api: Api, customer: Customer, hint: dict[str, str]
) -> None:
    assert api.get("/v2/plans").status_code == 200
    answer = revoke(stranger, customer, customer.token, **hint)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["Cache-Control"] == "no-store"
    refused = api.get("/v2/plans")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_another_process_that_has_not_seen_the_token_refuses_it_too(
    stranger: Api, customer: Customer, other_process: TestClient
) -> None:
    revoke(stranger, customer, customer.token)
    answer = other_process.get("/v2/plans", headers={"Authorization": f"Bearer {customer.token}"})
    assert answer.status_code == 401


@pytest.mark.parametrize("token", ["unknown", "x" * 20_000, "пароль", "a b", "%00"])
def test_an_unknown_token_is_answered_like_a_known_one(stranger: Api, customer: Customer, token: str) -> None:
    answer = revoke(stranger, customer, token)
    assert (answer.status_code, answer.content) == (200, b"")


def test_revoking_twice_is_answered_alike(stranger: Api, customer: Customer) -> None:
    answers = [revoke(stranger, customer, customer.token) for _ in range(2)]
    assert [(answer.status_code, answer.content) for answer in answers] == [(200, b"")] * 2


def test_another_clients_token_is_answered_like_an_unknown_one_and_lives_on(
    stranger: Api, api: Api, customer: Customer, db: Database
) -> None:
    other = make_customer(db, name="Other")
    answer = revoke(stranger, other, customer.token)
    unknown = revoke(stranger, other, "unknown")
    assert (answer.status_code, answer.content) == (unknown.status_code, unknown.content) == (200, b"")
    assert api.get("/v2/plans").status_code == 200


def test_the_clients_other_tokens_live_on(stranger: Api, customer: Customer, db: Database) -> None:
    with db.write() as tx:
        client = get_client(tx, customer.client_id)
        kept = issue_token(tx, client, client.scopes, now=NOW)
    revoke(stranger, customer, customer.token)
    assert stranger.as_(kept).get("/v2/plans").status_code == 200


@pytest.mark.parametrize(
    "changes", [{"client_secret": "wrong"}, {"client_secret": ""}, {"client_id": "unknown"}]
)
def test_a_client_that_does_not_prove_itself_revokes_nothing(
    stranger: Api, api: Api, customer: Customer, changes: dict[str, str]
) -> None:
    answer = revoke(stranger, customer, customer.token, **changes)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert answer.headers["Cache-Control"] == "no-store"
    assert api.get("/v2/plans").status_code == 200


def test_a_bearer_token_alone_does_not_authenticate_the_client(api: Api, customer: Customer) -> None:
    assert api.post(PATH, data={"token": customer.token}).status_code == 401


@pytest.mark.parametrize("token", [None, ""])
def test_a_request_without_a_token_is_invalid(stranger: Api, customer: Customer, token: str | None) -> None:
    form = {"client_id": customer.client_id, "client_secret": customer.client_secret}
    answer = stranger.post(PATH, data=form | ({} if token is None else {"token": token}))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.headers["Cache-Control"] == "no-store"


def test_json_multipart_and_http_basic_revoke_as_well(
    stranger: Api, customer: Customer, db: Database
) -> None:
    with db.write() as tx:
        client = get_client(tx, customer.client_id)
        tokens = [issue_token(tx, client, client.scopes, now=NOW) for _ in range(3)]
    pair = customer.client_id, customer.client_secret
    form = {"client_id": pair[0], "client_secret": pair[1]}
    answers = [
        stranger.post(PATH, form | {"token": tokens[0]}),
        stranger.post(
            PATH, files={name: (None, value) for name, value in (form | {"token": tokens[1]}).items()}
        ),
        stranger.post(PATH, data={"token": tokens[2]}, auth=pair),
    ]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert [stranger.as_(token).get("/v2/plans").status_code for token in tokens] == [401] * 3

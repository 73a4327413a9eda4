"""`POST /oauth/token`, as a customer sees it (RFC 6749)."""

import base64
import json
import re
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest

from frontdesk.access.accounts import revoke_client, rotate_secret
from frontdesk.access.authentication import PAUSE_SECONDS
from frontdesk.access.model import Scope
from frontdesk.db import Database
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer

PATH = "/oauth/token"
BOUNDARY = "a-boundary"


@pytest.fixture
def form(customer: Customer) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": customer.client_id,
        "client_secret": customer.client_secret,
        "scope": "customer",
    }


@pytest.fixture
def stranger(api: Api) -> Api:
    """A caller without a token."""
    return api.as_(None)


def multipart(form: dict[str, str]) -> dict[str, Any]:
    parts = "".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in form.items()
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    return {"content": f"{parts}--{BOUNDARY}--\r\n".encode(), "headers": headers}


def urlencoded(form: dict[str, str]) -> dict[str, Any]:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return {"content": urlencode(form).encode(), "headers": headers}


def as_json(form: dict[str, str]) -> dict[str, Any]:
    return {"content": json.dumps(form).encode(), "headers": {"Content-Type": "application/json"}}


def basic(client_id: str, secret: str) -> dict[str, str]:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
    return {"Authorization": "Basic " + base64.b64encode(pair).decode()}


def by_basic(form: dict[str, str]) -> dict[str, Any]:
    rest = {name: form[name] for name in form if not name.startswith("client_")}
    request = urlencoded(rest)
    request["headers"] |= basic(form["client_id"], form["client_secret"])
    return request


WAYS = pytest.mark.parametrize("send", [multipart, urlencoded, as_json, by_basic])


def refused(answer: Any, status: int, error: str) -> str:
    """Check an error's form; its description."""
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")
    assert answer.headers["Cache-Control"] == "no-store"
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.json()["error"] == error
    description = str(answer.json()["error_description"])
    assert re.fullmatch(r"[ !#-\[\]-~]+", description)
    return description


@WAYS
def test_a_token_is_had_in_each_of_the_four_ways(
    stranger: Api, api: Api, form: dict[str, str], send: Any
) -> None:
    answer = stranger.post(PATH, **send(form))
    assert answer.status_code == 200
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    token = answer.json()["access_token"]
    assert answer.json() == {
        "access_token": token,
        "token_type": "bearer",
        "expires_in": 7200,
        "scope": "customer",
        "created_at": int(NOW.timestamp()),
    }
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert api.as_(token).get("/v2/plans").status_code == 200


def test_a_token_lives_for_what_expires_in_says(stranger: Api, form: dict[str, str], clock: SetClock) -> None:
    answer = stranger.post(PATH, **urlencoded(form)).json()
    holder = stranger.as_(answer["access_token"])
    clock.advance(answer["expires_in"] - 1)
    assert holder.get("/v2/plans").status_code == 200
    clock.advance(1)
    assert holder.get("/v2/plans").status_code == 401


def test_a_form_without_a_content_type_is_read_as_urlencoded(stranger: Api, form: dict[str, str]) -> None:
    assert stranger.post(PATH, content=urlencode(form).encode()).status_code == 200


@pytest.mark.parametrize(
    "declared",
    [
        "APPLICATION/X-WWW-FORM-URLENCODED",
        "application/x-www-form-urlencoded; charset=ISO-8859-1",
        "application/x-www-form-urlencoded;charset=nonsense",
        "",
    ],
)
def test_letter_case_and_charset_of_the_content_type_do_not_matter(
    stranger: Api, form: dict[str, str], declared: str
) -> None:
    request = urlencoded(form) | {"headers": {"Content-Type": declared}}
    assert stranger.post(PATH, **request).status_code == 200


def test_unknown_parameters_and_a_trailing_ampersand_are_ignored(stranger: Api, form: dict[str, str]) -> None:
    body = urlencode(form) + "&audience=all&audience=more&flag&"
    answer = stranger.post(PATH, content=body.encode(), headers=urlencoded({})["headers"])
    assert answer.status_code == 200


@pytest.mark.parametrize("scope", [None, ""])
def test_without_a_scope_the_token_has_all_of_the_clients(
    stranger: Api, db: Database, scope: str | None
) -> None:
    narrow = make_customer(db, name="Narrow", scopes=frozenset({Scope.PLANS_READ, Scope.ELIGIBILITY_WRITE}))
    form = {"grant_type": "client_credentials"} | ({} if scope is None else {"scope": scope})
    headers = basic(narrow.client_id, narrow.client_secret)
    answer = stranger.post(PATH, data=form, headers=headers)
    assert answer.json()["scope"] == "eligibility:write plans:read"


def test_a_narrower_scope_is_granted_and_no_more_than_that(
    stranger: Api, form: dict[str, str], customer: Customer
) -> None:
    answer = stranger.post(PATH, **urlencoded(form | {"scope": "plans:read"}))
    assert answer.json()["scope"] == "plans:read"
    reader = stranger.as_(answer.json()["access_token"])
    assert reader.get("/v2/plans").status_code == 200
    assert reader.patch(f"/v2/plans/{customer.plan_ids[0]}", {}).status_code == 403


@pytest.mark.parametrize("scope", ["operator", "customer operator", "everything", "Customer", " ", '"'])
def test_a_scope_that_the_client_lacks_is_invalid(stranger: Api, form: dict[str, str], scope: str) -> None:
    refused(stranger.post(PATH, **urlencoded(form | {"scope": scope})), 400, "invalid_scope")


@pytest.mark.parametrize("grant_type", ["password", "authorization_code", "Client_Credentials", "é"])
def test_another_grant_is_not_supported(stranger: Api, form: dict[str, str], grant_type: str) -> None:
    answer = stranger.post(PATH, **urlencoded(form | {"grant_type": grant_type}))
    refused(answer, 400, "unsupported_grant_type")


@WAYS
def test_a_request_without_a_grant_type_is_invalid(stranger: Api, form: dict[str, str], send: Any) -> None:
    del form["grant_type"]
    assert "grant_type" in refused(stranger.post(PATH, **send(form)), 400, "invalid_request")
    refused(stranger.post(PATH, **send(form | {"grant_type": ""})), 400, "invalid_request")


@pytest.mark.parametrize("changes", [{"client_secret": "wrong"}, {"client_id": "unknown"}])
@WAYS
def test_an_unknown_client_and_a_wrong_secret_are_told_alike(
    stranger: Api, form: dict[str, str], changes: dict[str, str], send: Any
) -> None:
    answer = stranger.post(PATH, **send(form | changes))
    description = refused(answer, 401, "invalid_client")
    assert description == "The client is unknown or its secret is wrong."
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="frontdesk"'


@pytest.mark.parametrize("missing", ["client_id", "client_secret"])
@pytest.mark.parametrize("send", [multipart, urlencoded, as_json])
def test_a_client_that_does_not_prove_itself_is_invalid(
    stranger: Api, form: dict[str, str], missing: str, send: Any
) -> None:
    refused(stranger.post(PATH, **send(form | {missing: ""})), 401, "invalid_client")
    del form[missing]
    answer = stranger.post(PATH, **send(form))
    refused(answer, 401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


def test_credentials_in_the_address_are_not_taken(stranger: Api, form: dict[str, str]) -> None:
    answer = stranger.post(f"{PATH}?{urlencode(form)}", **urlencoded({}))
    refused(answer, 401, "invalid_client")


def test_a_revoked_client_gets_no_token(stranger: Api, form: dict[str, str], db: Database) -> None:
    with db.write() as tx:
        revoke_client(tx, form["client_id"], now=NOW)
    refused(stranger.post(PATH, **urlencoded(form)), 401, "invalid_client")


def test_both_secrets_of_a_rotation_get_tokens(stranger: Api, form: dict[str, str], db: Database) -> None:
    with db.write() as tx:
        second = rotate_secret(tx, form["client_id"], now=NOW)
    for secret in (form["client_secret"], second):
        assert stranger.post(PATH, **urlencoded(form | {"client_secret": secret})).status_code == 200


@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "scope"])
def test_a_parameter_that_is_given_twice_is_invalid_even_with_the_same_value(
    stranger: Api, form: dict[str, str], name: str
) -> None:
    twice = [*form.items(), (name, form[name])]
    body = urlencode(twice).encode()
    answer = stranger.post(PATH, content=body, headers=urlencoded({})["headers"])
    assert refused(answer, 400, "invalid_request") == f"{name} is given twice."
    request = multipart(form)
    first, _, rest = request["content"].partition(f"--{BOUNDARY}".encode())
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n\r\n--{BOUNDARY}'.encode()
    refused(stranger.post(PATH, **request | {"content": first + part + rest}), 400, "invalid_request")
    twice_in_json = json.dumps(form)[:-1] + f', "{name}": "x"}}'
    answer = stranger.post(PATH, **as_json({}) | {"content": twice_in_json.encode()})
    refused(answer, 400, "invalid_request")


@pytest.mark.parametrize("send", [multipart, urlencoded, as_json])
def test_two_ways_of_authenticating_at_once_are_invalid(
    stranger: Api, form: dict[str, str], send: Any
) -> None:
    request = send(form)
    request["headers"] |= basic(form["client_id"], form["client_secret"])
    refused(stranger.post(PATH, **request), 400, "invalid_request")


def test_http_basic_may_be_accompanied_by_its_own_client_id_only(stranger: Api, form: dict[str, str]) -> None:
    headers = basic(form.pop("client_id"), form.pop("client_secret"))
    own = form | {"client_id": make_id(headers)}
    assert stranger.post(PATH, data=own, headers=headers).status_code == 200
    refused(
        stranger.post(PATH, data=form | {"client_id": "another"}, headers=headers), 400, "invalid_request"
    )


def make_id(headers: dict[str, str]) -> str:
    return base64.b64decode(headers["Authorization"].split()[1]).decode().partition(":")[0]


def test_two_authorization_headers_are_invalid(stranger: Api, form: dict[str, str]) -> None:
    header = basic(form["client_id"], form["client_secret"])["Authorization"]
    answer = stranger.http.post(
        PATH,
        data={"grant_type": "client_credentials"},
        headers=[("Authorization", header), ("Authorization", header)],
    )
    refused(answer, 400, "invalid_request")


def test_http_basic_is_form_urlencoded_inside(stranger: Api, customer: Customer) -> None:
    """RFC 6749, section 2.3.1: every character may come percent-encoded."""
    pair = ":".join(
        "".join(f"%{ord(c):02X}" for c in part) for part in (customer.client_id, customer.client_secret)
    )
    headers = {"Authorization": "bAsIc  " + base64.b64encode(pair.encode()).decode()}
    answer = stranger.post(PATH, data={"grant_type": "client_credentials"}, headers=headers)
    assert answer.status_code == 200


def test_a_bearer_token_beside_a_forms_credentials_is_no_second_way(api: Api, form: dict[str, str]) -> None:
    assert api.post(PATH, **urlencoded(form)).status_code == 200


@pytest.mark.parametrize(
    "declared", ["text/plain", "application/xml", "application/octet-stream", "nonsense"]
)
def test_another_content_type_is_a_problem_415(stranger: Api, form: dict[str, str], declared: str) -> None:
    request = urlencoded(form) | {"headers": {"Content-Type": declared}}
    answer = stranger.post(PATH, **request)
    assert (answer.status_code, answer.headers["Content-Type"]) == (415, "application/problem+json")
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_compressed_body_is_a_problem_415(stranger: Api, form: dict[str, str]) -> None:
    request = urlencoded(form)
    request["headers"]["Content-Encoding"] = "gzip"
    assert stranger.post(PATH, **request).status_code == 415


def test_a_body_above_64_kib_is_a_problem_413(stranger: Api, form: dict[str, str]) -> None:
    answer = stranger.post(PATH, **urlencoded(form | {"other": "x" * 65_536}))
    assert (answer.status_code, answer.headers["Cache-Control"]) == (413, "no-store")


def test_who_keeps_guessing_is_told_when_to_come_back_and_the_failures_are_kept(
    stranger: Api, form: dict[str, str], clock: SetClock
) -> None:
    for _ in range(10):
        refused(stranger.post(PATH, **urlencoded(form | {"client_secret": "wrong"})), 401, "invalid_client")
    wrong = form | {"client_secret": "wrong"}
    answer = stranger.post(PATH, **urlencoded(wrong))
    refused(answer, 429, "rate_limited")
    assert answer.headers["Retry-After"] == "300"
    refused(stranger.post("/oauth/revoke", **urlencoded(wrong | {"token": "x"})), 429, "rate_limited")
    clock.advance(300)
    refused(stranger.post(PATH, **urlencoded(wrong)), 401, "invalid_client")


def test_the_right_secret_is_let_in_after_a_pause_where_others_guessed(
    stranger: Api, form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("frontdesk.api.oauth.asyncio.sleep", pause)
    for _ in range(30):
        stranger.post(PATH, **urlencoded(form | {"client_secret": "wrong"}))
        stranger.post(PATH, **urlencoded(form | {"client_id": "unknown"}))
    assert stranger.post(PATH, **urlencoded(form)).status_code == 200
    assert pauses == [PAUSE_SECONDS]


def test_token_requests_count_against_the_limit_once_the_secret_is_right(stranger: Api, db: Database) -> None:
    limited = make_customer(db, name="Limited", requests_per_minute=4)
    own = {
        "grant_type": "client_credentials",
        "client_id": limited.client_id,
        "client_secret": limited.client_secret,
    }
    for _ in range(3):  # a stranger who knows the public client_id uses none of them up
        refused(stranger.post(PATH, **urlencoded(own | {"client_secret": "wrong"})), 401, "invalid_client")
    answer = stranger.post(PATH, **urlencoded(own))
    assert (answer.status_code, answer.headers["RateLimit-Remaining"]) == (200, "3")
    token = {"token": answer.json()["access_token"]}
    assert stranger.as_(token["token"]).get("/v2/plans").headers["RateLimit-Remaining"] == "2"
    assert stranger.post("/oauth/revoke", **urlencoded(own | token)).headers["RateLimit-Remaining"] == "1"
    assert stranger.post(PATH, **urlencoded(own)).status_code == 200
    answer = stranger.post(PATH, **urlencoded(own))
    refused(answer, 429, "rate_limited")
    told = [
        answer.headers[name]
        for name in ("Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
    ]
    assert told == ["60", "4", "0", "60"]


def test_what_a_caller_sent_is_in_no_log_and_no_answer(
    stranger: Api, form: dict[str, str], customer: Customer
) -> None:
    answers = [
        stranger.post(PATH, **send(form | {"client_secret": "canary-secret"}))
        for send in (multipart, urlencoded, as_json, by_basic)
    ]
    answers.append(stranger.post(PATH, **as_json(form | {"scope": "canary-scope"})))
    answers.append(stranger.post(PATH, **as_json(form | {"grant_type": "canary-grant"})))
    good = stranger.post(PATH, **urlencoded(form))
    stranger.http.__exit__(None, None, None)
    log = stranger.log.getvalue()
    stranger.http.__enter__()
    for text in (*(answer.text for answer in answers), log):
        assert "canary" not in text
        assert customer.client_secret not in text
        assert good.json()["access_token"] not in text

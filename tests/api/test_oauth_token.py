"""`POST /oauth/token` (RFC 6749) and `/oauth/revoke` (RFC 7009), as a customer sees them, and their
audit trail. Whatever is sent, a refusal is the caller's fault (4xx).
"""

import base64
import re
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest

from frontdesk.access.authentication import PAUSE_SECONDS
from frontdesk.access.model import Scope
from frontdesk.db import Database
from tests.api.conftest import URLENCODED, OAuth, Trail, as_json, urlencoded
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer

PATH = "/oauth/token"
MULTIPART = "multipart/form-data; boundary=X"


def part(name: str, value: bytes, head: bytes = b"") -> bytes:
    disposition = f'Content-Disposition: form-data; name="{name}"'.encode()
    return b"--X\r\n" + disposition + head + b"\r\n\r\n" + value + b"\r\n"


def multipart(form: dict[str, str]) -> dict[str, Any]:
    parts = b"".join(part(name, value.encode()) for name, value in form.items())
    return {"content": parts + b"--X--\r\n", "headers": {"Content-Type": MULTIPART}}


def basic(client_id: str, secret: str) -> dict[str, str]:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
    return {"Authorization": "Basic " + base64.b64encode(pair).decode()}


def by_basic(form: dict[str, str]) -> dict[str, Any]:
    request = urlencoded({name: form[name] for name in form if not name.startswith("client_")})
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


def test_a_program_finds_out_by_itself_how_to_get_a_token(
    oauth: OAuth, api: Api, customer: Customer
) -> None:
    found = api.as_(None).get("/.well-known/oauth-authorization-server")
    assert found.headers["Content-Type"] == "application/json"
    described = found.json()
    assert described["issuer"] == "https://api.example.com"
    place = described["token_endpoint"].removeprefix(described["issuer"])
    ways = {"client_secret_post": urlencoded, "client_secret_basic": by_basic}
    assert ways.keys() == {*described["token_endpoint_auth_methods_supported"]}
    own = {"client_id": customer.client_id, "client_secret": customer.client_secret}
    for send in ways.values():
        [grant] = described["grant_types_supported"]
        token = api.request("POST", place, **send(own | {"grant_type": grant})).json()
        assert token["scope"] in described["scopes_supported"]
        place_to_revoke = described["revocation_endpoint"].removeprefix(described["issuer"])
        revoked = api.request(
            "POST", place_to_revoke, **send(own | {"token": token["access_token"]})
        )
        assert revoked.status_code == 200
    assert Scope.OPERATOR not in described["scopes_supported"]


@WAYS
def test_a_token_is_had_in_four_ways_and_lives_two_hours(
    oauth: OAuth, clock: SetClock, send: Any
) -> None:
    answer = oauth.token(send, scope="customer")
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
    clock.advance(7199)
    assert oauth.caller.as_(token).get("/v2/plans").status_code == 200
    clock.advance(1)
    assert oauth.caller.as_(token).get("/v2/plans").status_code == 401


@pytest.mark.parametrize(
    "declared", [None, "", URLENCODED.upper(), f"{URLENCODED};charset=nonsense"]
)
def test_charset_letter_case_and_unknown_parameters_do_not_matter(
    oauth: OAuth, declared: str | None
) -> None:
    body = urlencode(oauth.form) + "&audience=all&audience=more&flag&"
    headers = {} if declared is None else {"Content-Type": declared}
    assert oauth.caller.post(PATH, content=body.encode(), headers=headers).status_code == 200


def test_a_narrower_scope_is_granted_and_no_more_than_that(
    oauth: OAuth, api: Api, db: Database
) -> None:
    scopes = frozenset({Scope.PLANS_READ, Scope.PLANS_WRITE})
    own = OAuth(api, make_customer(db, name="Narrow", scopes=scopes))
    answers = [own.token(by_basic, scope=scope) for scope in (None, "", "plans:read")]
    granted = [answer.json()["scope"] for answer in answers]
    assert granted == ["plans:read plans:write"] * 2 + ["plans:read"]
    reader = api.as_(answers[2].json()["access_token"])
    assert [reader.get("/v2/plans").status_code, reader.patch("/v2/plans/1", {}).status_code] == [
        200,
        403,
    ]


@pytest.mark.parametrize(
    "scope", ["operator", "customer operator", "everything", "Customer", " ", '"']
)
def test_a_scope_that_the_client_lacks_is_invalid(oauth: OAuth, scope: str) -> None:
    refused(oauth.token(scope=scope), 400, "invalid_scope")


@WAYS
def test_another_grant_is_not_supported(oauth: OAuth, send: Any) -> None:
    for other in ("password", "authorization_code", "Client_Credentials", "é"):
        refused(oauth.token(send, grant_type=other), 400, "unsupported_grant_type")
    for nothing in (None, ""):
        assert "grant_type" in refused(
            oauth.token(send, grant_type=nothing), 400, "invalid_request"
        )


@WAYS
def test_an_unknown_client_and_a_wrong_secret_are_told_alike(oauth: OAuth, send: Any) -> None:
    wrong: list[dict[str, Any]] = [{"client_secret": "wrong"}, {"client_id": "unknown"}]
    missing = [{name: nothing} for name in ("client_id", "client_secret") for nothing in ("", None)]
    for changes in wrong if send is by_basic else wrong + missing:
        answer = oauth.token(send, "token", **changes)
        description = refused(answer, 401, "invalid_client")
        assert (description == "The client is unknown or its secret is wrong.") is (
            changes in wrong
        )
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="frontdesk"'


def test_a_body_that_is_no_form_is_a_problem(oauth: OAuth) -> None:
    for headers in ({"Content-Type": "nonsense"}, {"Content-Encoding": "gzip"}):
        answer = oauth.token(lambda form, more=headers: {"data": form, "headers": more})
        assert (answer.status_code, answer.headers["Content-Type"]) == (
            415,
            "application/problem+json",
        )
        assert answer.headers["Cache-Control"] == "no-store"


def test_credentials_in_the_address_are_not_taken(oauth: OAuth) -> None:
    answer = oauth.caller.post(f"{PATH}?{urlencode(oauth.form)}", **urlencoded({}))
    refused(answer, 401, "invalid_client")


@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "scope"])
def test_a_parameter_that_is_given_twice_is_invalid_even_with_the_same_value(
    oauth: OAuth, name: str
) -> None:
    form = oauth.form | {"scope": "customer"}
    twice = urlencode([*form.items(), (name, form[name])]).encode()
    parts = part(name, b"") + multipart(form)["content"]
    json_twice = as_json(form)["content"][:-1] + f', "{name}": "x"}}'.encode()
    for kind, content in (
        (URLENCODED, twice),
        (MULTIPART, parts),
        ("application/json", json_twice),
    ):
        answer = oauth.caller.post(PATH, content=content, headers={"Content-Type": kind})
        description = refused(answer, 400, "invalid_request")
        assert kind == "application/json" or description == f"{name} is given twice."


def test_http_basic_is_accompanied_by_its_own_client_id_at_most(oauth: OAuth, api: Api) -> None:
    client_id = oauth.form["client_id"]
    secret = oauth.form["client_secret"]
    header = basic(client_id, secret)["Authorization"]
    rest: dict[str, str] = {"grant_type": "client_credentials"}
    for more, status in (
        ({"client_id": client_id}, 200),
        ({"client_id": "another"}, 400),
        (oauth.form, 400),
    ):
        for send in (multipart, urlencoded, as_json):
            request = send(rest | more)
            request["headers"]["Authorization"] = header
            answer = oauth.caller.post(PATH, **request)
            told = answer.json().get("error", "invalid_request")
            assert (answer.status_code, told) == (status, "invalid_request")
    two = [("Authorization", header), ("Authorization", header)]
    refused(oauth.caller.http.post(PATH, data=rest, headers=two), 400, "invalid_request")
    assert api.post(PATH, data=oauth.form).status_code == 200  # a bearer token is no second way


def test_http_basic_is_form_urlencoded_inside(oauth: OAuth, customer: Customer) -> None:
    """RFC 6749, section 2.3.1: every character may come percent-encoded."""
    halves = (customer.client_id, customer.client_secret)
    pair = ":".join("".join(f"%{ord(c):02X}" for c in half) for half in halves)
    headers = {"Authorization": "bAsIc  " + base64.b64encode(pair.encode()).decode()}
    answer = oauth.caller.post(PATH, data={"grant_type": "client_credentials"}, headers=headers)
    assert answer.status_code == 200


def test_a_guesser_is_told_when_to_come_back_and_the_failures_are_kept(
    oauth: OAuth, clock: SetClock
) -> None:
    for _ in range(10):
        refused(oauth.token(client_secret="wrong"), 401, "invalid_client")
    answer = oauth.token(client_secret="wrong")
    refused(answer, 429, "rate_limited")
    assert answer.headers["Retry-After"] == "300"
    refused(oauth.revoke("x", client_secret="wrong"), 429, "rate_limited")
    clock.advance(300)
    refused(oauth.token(client_secret="wrong"), 401, "invalid_client")


def test_the_right_secret_waits_where_others_guessed(
    oauth: OAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("frontdesk.api.oauth.asyncio.sleep", pause)
    for _ in range(30):
        oauth.token(client_secret="wrong")
        oauth.token(client_id="unknown")
    assert oauth.token().status_code == 200
    assert pauses == [PAUSE_SECONDS]


def test_token_requests_count_against_the_limit_once_the_secret_is_right(
    api: Api, db: Database
) -> None:
    oauth = OAuth(api, make_customer(db, name="Limited", requests_per_minute=4))
    for _ in range(3):  # a stranger who knows the public client_id uses none of them up
        refused(oauth.token(client_secret="wrong"), 401, "invalid_client")
    answer = oauth.token()
    assert (answer.status_code, answer.headers["RateLimit-Remaining"]) == (200, "3")
    token = answer.json()["access_token"]
    assert api.as_(token).get("/v2/plans").headers["RateLimit-Remaining"] == "2"
    assert oauth.revoke(token).headers["RateLimit-Remaining"] == "1"
    assert oauth.token().status_code == 200
    answer = oauth.token()
    refused(answer, 429, "rate_limited")
    names = ("Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
    assert [answer.headers[name] for name in names] == ["60", "4", "0", "60"]


def test_what_a_caller_sent_is_in_no_log_and_no_answer(
    oauth: OAuth, api: Api, customer: Customer
) -> None:
    ways = (multipart, urlencoded, as_json, by_basic)
    answers = [oauth.token(send, client_secret="canary-secret") for send in ways]
    answers += [
        oauth.token(as_json, scope="canary-scope"),
        oauth.token(as_json, grant_type="canary-grant"),
    ]
    good = oauth.token().json()["access_token"]
    api.http.__exit__(None, None, None)
    api.http.__enter__()
    assert "/oauth/token" in api.log.getvalue()
    for text in (*(answer.text for answer in answers), api.log.getvalue()):
        assert [
            secret for secret in ("canary", customer.client_secret, good) if secret in text
        ] == []


# JSON bodies that no reader may take are those of tests/api/hostile.py.
FORMS: dict[bytes, int] = {
    b"": 401,
    b"client_secret=x&client_id=a%00b": 400,
    b"client_secret=x&client_id=%ff%fe": 400,
    b"client_secret=x&client_id=\xff": 400,
    b"client_secret=x&client_id=%zz%": 401,
    "client_secret=x&client_id=пароль".encode(): 401,
    b"a=&" * 20_000: 400,
    b"&&&===&&&": 401,
    b'{"grant_type": "client_credentials"}': 401,
}
A_CLIENT = part("client_id", b"a") + part("client_secret", b"x")
MULTIPARTS: list[tuple[str, bytes, int]] = [
    *(
        (boundary, A_CLIENT + b"--X--\r\n", 400)
        for boundary in ("", 'a=""', "=Y", '="X\\""', "=é", "=" + "X" * 9000)
    ),
    *(
        ("=X", part("client_id", value) + A_CLIENT + b"--X--\r\n", 400)
        for value in (b"a\0b", b"\xff\xfe")
    ),
    ("=X; charset=unicode_escape", part("other", rb"\ud800") + A_CLIENT + b"--X--\r\n", 401),
    ("=X; charset=idna", part("other", b"\xff") + A_CLIENT + b"--X--\r\n", 400),
    ("=X; charset=utf-16", part("other", b"abc") + A_CLIENT + b"--X--\r\n", 401),
    ("=X", A_CLIENT[:-20], 401),
    ("=X", part("client_id", b"a", b'; filename="f"') + b"--X--\r\n", 400),
    ("=X", b"--X\r\nContent-Disposition: form-data\r\n\r\na\r\n--X--\r\n", 400),
    ("=X", b"--X\r\nA: b\r\n\r\na\r\n--X--\r\n", 400),
    ("=X", part("a", b"") * 900 + b"--X--\r\n", 400),
    ("=X", b"--X\r\nA: " + b"b" * 50_000 + b"\r\n\r\na\r\n--X--\r\n", 400),
]
FORGED = [(URLENCODED, body, status) for body, status in FORMS.items()]
FORGED += [
    (f"multipart/form-data; boundary{end}", body, status) for end, body, status in MULTIPARTS
]


@pytest.mark.parametrize("path", [PATH, "/oauth/revoke"])
def test_a_hostile_body_is_the_callers_fault(oauth: OAuth, clock: SetClock, path: str) -> None:
    for declared, body, status in FORGED:
        headers = {"Content-Type": declared.encode("latin-1")}
        answer = oauth.caller.post(path, content=body, headers=headers)
        error = "invalid_request" if status == 400 else "invalid_client"
        assert (answer.status_code, answer.json()["error"]) == (status, error), (
            declared,
            body[:80],
        )
        clock.advance(60)  # the limit on failures is not what is tested here


@pytest.mark.parametrize(
    "pair", [b"client", b":", b"a\0b:c", b"a%00b:c", b"a%ff:c", b"\xff\xfe:c", None]
)
def test_hostile_http_basic_is_an_invalid_client(oauth: OAuth, pair: bytes | None) -> None:
    for encoded in [base64.b64encode(pair)] if pair else [b"", b"!!!", b"YTpiYQ", "Ã©".encode()]:
        headers = {"Authorization": b"Basic " + encoded}
        answer = oauth.caller.post(PATH, data={"grant_type": "client_credentials"}, headers=headers)
        refused(answer, 401, "invalid_client")
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="frontdesk"'


def statuses(oauth: OAuth, *tokens: str) -> list[int]:
    return [oauth.caller.as_(token).get("/v2/plans").status_code for token in tokens]


@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "another"])
def test_a_revoked_token_ends_at_once(
    oauth: OAuth, api: Api, customer: Customer, hint: str | None
) -> None:
    assert api.get("/v2/plans").status_code == 200
    for _ in range(2):
        answer = oauth.revoke(customer.token, token_type_hint=hint)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["Cache-Control"] == "no-store"
        assert api.get("/v2/plans").status_code == 401


def test_a_client_cannot_revoke_the_token_of_another(
    oauth: OAuth, api: Api, customer: Customer, db: Database
) -> None:
    other = OAuth(api, make_customer(db, name="Other"))
    for token in (customer.token, "unknown", "x" * 20_000, "пароль", "a b", "%00"):
        answer = other.revoke(token)
        assert (answer.status_code, answer.content) == (200, b"")
    assert statuses(oauth, customer.token) == [200]


def test_a_client_that_does_not_prove_itself_revokes_nothing(
    oauth: OAuth, customer: Customer
) -> None:
    wrong: list[dict[str, Any]] = [
        {"client_secret": "wrong"},
        {"client_secret": ""},
        {"client_id": "x"},
    ]
    for changes in wrong:
        refused(oauth.revoke(customer.token, **changes), 401, "invalid_client")
    for nothing in (None, ""):
        refused(oauth.revoke(nothing), 400, "invalid_request")
    assert (
        oauth.caller.as_(customer.token).post("/oauth/revoke", data={"token": "x"}).status_code
        == 401
    )
    assert statuses(oauth, customer.token) == [200]


def test_issued_and_revoked_tokens_are_recorded_once(
    oauth: OAuth, trail: Trail, customer: Customer
) -> None:
    issued = oauth.token()
    token = issued.json()["access_token"]
    for _ in range(2):
        assert oauth.revoke(token).status_code == 200
    entries = trail("token")
    assert [entry["action"] for entry in entries] == ["token.issued", "token.revoked"]
    assert (entries[0]["actor"], entries[0]["account_id"]) == (
        customer.client_id,
        customer.account_id,
    )
    assert entries[0]["request_id"] == issued.headers["X-Request-Id"]
    assert set(entries[0]["detail"]) == {"network"}
    assert len(entries[0]["detail"]["network"]) == 16
    for secret in (token, customer.client_secret, "testclient"):
        assert secret not in str(entries)


def test_refusals_are_recorded_until_they_are_limited(
    oauth: OAuth, trail: Trail, customer: Customer
) -> None:
    oauth.token(client_id="CANARY")
    for _ in range(12):
        oauth.token(client_secret="wrong")
    unknown, *known = trail("token")
    assert [entry["action"] for entry in (unknown, *known)] == ["token.refused"] * 11 + [
        "token.limited"
    ]
    assert (unknown["actor"], unknown["account_id"], "CANARY" in str(unknown)) == (
        "unknown",
        None,
        False,
    )
    assert {entry["actor"] for entry in known} == {customer.client_id}

"""What holds for every route: tokens, headers, methods, limits, and what is logged."""

import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS, ENTRANCE, PAGES
from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from frontdesk.web.endpoint import Endpoint
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import Customer, make_customer, make_operator, member_body

# The operator's routes all ask for a token; those of the sandbox's mailbox look at it themselves.
PROTECTED = [endpoint for endpoint in ENDPOINTS if endpoint.scope is not None] + list(OPERATORS)
OPEN = {
    *("POST /oauth/token", "POST /oauth/revoke", "GET /openapi.json", "GET /docs", "GET /docs/{asset}"),
    *("GET /", "GET /problems", "GET /healthz", "GET /readyz"),
    *("GET /register/{token}", "GET /unsubscribe/{token}", "POST /unsubscribe/{token}"),
}


def example_path(endpoint: Endpoint) -> str:
    return re.sub(r"\{\w+\}", "1", endpoint.path)


def test_only_these_routes_need_no_token() -> None:
    routes = [endpoint for endpoint in (*ENTRANCE, *ENDPOINTS, *PAGES) if endpoint not in PROTECTED]
    assert {f"{endpoint.method} {endpoint.path}" for endpoint in routes} == OPEN


@pytest.mark.parametrize("endpoint", PROTECTED, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer x", "Basic eDp5", "Bearer \xff"])
def test_every_protected_route_refuses_without_a_good_token(
    api: Api, endpoint: Any, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    answer = api.as_(None).request(endpoint.method, example_path(endpoint), headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


@pytest.mark.parametrize("endpoint", PROTECTED, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_every_protected_route_refuses_a_token_without_its_scope(
    api: Api, db: Database, endpoint: Any
) -> None:
    needed = endpoint.scope or Scope.OPERATOR
    others = frozenset(Scope) - {needed, Scope.CUSTOMER, Scope.OPERATOR}
    tokens = [make_customer(db, name="Others", scopes=others).token]
    tokens.append(api.token or "" if needed is Scope.OPERATOR else make_operator(db).token)
    for token in tokens:
        answer = api.as_(token).request(endpoint.method, example_path(endpoint))
        assert (answer.status_code, answer.json()["title"]) == (403, "The token's scope is too narrow")
        assert answer.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{needed}"'


@pytest.mark.parametrize("endpoint", PAGES, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_a_page_for_those_who_were_invited_looks_at_no_token(api: Api, endpoint: Any) -> None:
    answers = [
        api.as_(token).request(endpoint.method, example_path(endpoint), headers={"X-Request-Id": "same"})
        for token in (None, "unknown", api.token)
    ]
    first = answers[0]
    assert first.status_code in (200, 404)
    assert first.headers["Content-Type"] == "text/html; charset=utf-8"
    assert first.headers["Cache-Control"] == "no-store"
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (first.status_code, first.content)
    }


def test_an_expired_token_is_refused(api: Api, clock: SetClock) -> None:
    assert api.get("/v2/plans").status_code == 200
    clock.advance(7200)
    assert api.get("/v2/plans").status_code == 401


def test_two_authorization_headers_are_bad_framing(api: Api) -> None:
    headers = [("Authorization", f"Bearer {api.token}"), ("Authorization", f"Bearer {api.token}")]
    assert api.http.get("/v2/plans", headers=headers).status_code == 400


def test_an_unknown_method_is_told_the_known_ones(api: Api) -> None:
    answer = api.request("DELETE", "/v2/plans")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert api.request("PUT", "/v2/plans/1/eligibility").headers["Allow"] == "POST"


def test_an_unknown_address_is_a_problem_too(api: Api) -> None:
    for path in ("/v2", "/v2/plans/", "/v1/plans", "/%00", "/v2/plans/1/eligibility/2"):
        answer = api.get(path)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("accept", "status"),
    [("application/json", 200), ("*/*", 200), ("application/*;q=0.5, text/html", 200), ("text/html", 406),
     ("application/json;q=0", 406), ("*/*, application/json;q=0", 406), ("", 200)],
)  # fmt: skip
def test_an_accept_header_that_excludes_json_is_not_acceptable(api: Api, accept: str, status: int) -> None:
    assert api.get("/v2/plans", headers={"Accept": accept}).status_code == status


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("application/json", 422), ("application/json; charset=UTF-8", 422), ("application/merge-patch+json", 422),
     ("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/json; charset=latin-1", 415)],
)  # fmt: skip
def test_a_body_declared_as_something_else_than_json_is_refused(
    api: Api, customer: Customer, content_type: str, status: int
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    answer = api.request("POST", path, content=b"{}", headers={"Content-Type": content_type})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("sent", "kept"), [("my-id.1_2", True), ("a" * 65, False), ("a b", False), ("ä", False)]
)
def test_a_sane_request_id_is_kept(api: Api, sent: str, kept: bool) -> None:
    answer = api.get("/v2/plans", headers={"X-Request-Id": sent.encode()})
    assert (answer.headers["X-Request-Id"] == sent) is kept


def test_a_client_with_a_limit_is_told_what_is_left_and_when_to_come_back(api: Api, db: Database) -> None:
    limited = api.as_(make_customer(db, name="Limited", requests_per_minute=3).token)
    answers = [limited.get("/v2/plans") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[0].headers["RateLimit-Limit"] == "3"
    assert answers[3].headers["Retry-After"] == "60"
    told = [answers[3].headers[f"RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")]
    assert told == ["3", "0", "60"]
    assert api.get("/v2/plans").status_code == 200


def test_requests_without_the_scope_count_against_the_limit(api: Api, db: Database) -> None:
    narrow = make_customer(db, name="Narrow", scopes=frozenset({Scope.PLANS_READ}), requests_per_minute=2)
    caller = api.as_(narrow.token)
    path = f"/v2/plans/{narrow.plan_ids[0]}"
    answers = [caller.patch(path, {}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [403, 403, 429]
    assert answers[0].headers["RateLimit-Remaining"] == "1"


def test_a_client_without_a_limit_of_its_own_has_the_installations_and_hears_of_it_at_its_end(
    config: Config, db: Database, clock: SetClock
) -> None:
    app = App(replace(config, requests_per_minute=60), open_for_test(config.database_url, "service"), clock)
    customer = make_customer(db, name="Plain")
    with TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http:
        api = Api(http, customer.token, io.StringIO())
        answers = [api.get("/v2/plans") for _ in range(61)]
    assert [answer.status_code for answer in answers] == [200] * 60 + [429]
    told = [answer.headers.get("RateLimit-Remaining") for answer in answers]
    assert told == [None] * 54 + ["5", "4", "3", "2", "1", "0", "0"]
    assert answers[-1].headers["Retry-After"] == "60"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["application/json", "text/html"], 200),
        (["text/html", "application/json"], 200),
        (["text/html", "text/plain"], 406),
        (["application/json;q=0", "*/*"], 406),
    ],
)
def test_all_lines_of_a_repeated_accept_header_count(api: Api, lines: list[str], status: int) -> None:
    headers = [("Authorization", f"Bearer {api.token}"), *(("Accept", line) for line in lines)]
    del api.http.headers["Accept"]
    assert api.http.get("/v2/plans", headers=headers).status_code == status


def test_all_lines_of_other_repeated_list_headers_count(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}"
    own = ("Authorization", f"Bearer {api.token}")
    tag = api.get(path).headers["ETag"]
    for lines in ((tag, '"other"'), ('"other"', tag)):
        known = [own, *(("If-None-Match", line) for line in lines)]
        assert api.http.get(path, headers=known).status_code == 304
        matching = [own, *(("If-Match", line) for line in lines)]
        assert api.http.patch(path, json={}, headers=matching).status_code == 200
        preferring = [own, ("Prefer", "handling=strict"), ("Prefer", "wait=10")]
        assert api.http.patch(path, json={"odd": 1}, headers=preferring).status_code == 422


def test_an_empty_answer_has_no_type_and_an_unchanged_one_no_length(api: Api, customer: Customer) -> None:
    unchanged = api.get("/v2/plans", headers={"If-None-Match": api.get("/v2/plans").headers["ETag"]})
    assert unchanged.status_code == 304
    assert {"content-type", "content-length"} & set(unchanged.headers) == set()
    secret = {"client_id": customer.client_id, "client_secret": customer.client_secret, "token": "unknown"}
    revoked = api.as_(None).post("/oauth/revoke", secret)
    assert (revoked.status_code, revoked.headers["Content-Length"]) == (200, "0")
    assert "content-type" not in revoked.headers


def test_health_needs_no_token_and_metrics_needs_the_operators(api: Api, db: Database) -> None:
    assert api.as_(None).get("/healthz").json() == {"status": "ok"}
    assert api.as_(None).get("/readyz").json()["status"] == "ready"
    operator = make_operator(db)
    text = api.as_(operator.token).get("/metrics").text
    assert 'frontdesk_requests_total{method="GET",route="/healthz",status="200"} 1.0' in text
    assert api.get("/metrics").status_code == 403


def test_nothing_that_a_person_sent_is_in_a_log_a_metric_or_an_error(
    api: Api, db: Database, customer: Customer, capfd: pytest.CaptureFixture[str]
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    canaries = {name: f"canary{name}" for name in member_body() if name not in ("metadata", "dob", "email")}
    good = member_body(1, first_name="canaryfirst", last_name="canarylast", email="canary@example.com")
    good |= {
        "external_id": "canary-1",
        "member_id": "canary-2",
        "city": "canarycity",
        "metadata": {"k": "canarymeta"},
    }
    answers = [
        api.post(path, good),
        api.post(path, good | {"external_id": "canary-3"}),
        api.post(path, canaries | {"email": "canary@", "dob": "canary", "metadata": {"k": ["canary"]}}),
        api.post(path, "canary"),
        api.request("POST", path, content=b'{"canary'),
        api.get("/v2/plans?external_id=canary"),
    ]
    operator = make_operator(db)
    metrics = api.as_(operator.token).get("/metrics").text
    api.http.__exit__(None, None, None)
    api.http.__enter__()
    errors = [answer.text for answer in answers if answer.status_code >= 400]
    assert len(errors) == 4
    captured = capfd.readouterr()
    for text in (*errors, metrics, api.log.getvalue(), captured.out, captured.err):
        assert "canary" not in text


def test_every_request_is_logged_with_ids_only(api: Api, customer: Customer) -> None:
    answer = api.get("/v2/plans", headers={"X-Request-Id": "logged-1"})
    api.http.__exit__(None, None, None)
    lines = [json.loads(line) for line in api.log.getvalue().splitlines()]
    [line] = [line for line in lines if line["request_id"] == answer.headers["X-Request-Id"]]
    assert line | {"at": "", "ms": 0} == {
        "at": "", "event": "request", "request_id": "logged-1", "client": customer.client_id, "method": "GET",
        "route": "/v2/plans", "status": 200, "ms": 0,
    }  # fmt: skip
    api.http.__enter__()

"""What holds for every route: tokens, headers, methods, limits, and what is logged."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS, ENTRANCE, PAGES
from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.installation import build_asgi
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from frontdesk.sandbox.door import ENDPOINTS as SANDBOX
from frontdesk.web.endpoint import Endpoint
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import Customer, make_customer, make_operator, member_body

# The operator's routes ask for a token; those of the sandbox's mailbox look at it themselves. Mail
# providers have none.
PROVIDERS = "POST /operator/v1/email-events/{provider}/{token}"
ASKING = [endpoint for endpoint in ENDPOINTS if endpoint.scope is not None or endpoint.any_scope]
TAKING = [endpoint for endpoint in OPERATORS if f"{endpoint.method} {endpoint.path}" != PROVIDERS]
PROTECTED = [*ASKING, *TAKING, *SANDBOX]
OPEN = {
    *(
        "POST /oauth/token",
        "POST /oauth/revoke",
        "GET /openapi.json",
        "GET /docs",
        "GET /docs/{asset}",
    ),
    "GET /.well-known/oauth-authorization-server",
    *("GET /", "GET /problems", "GET /llms.txt", "GET /healthz", "GET /readyz"),
    PROVIDERS,
    *("GET /register/{token}", "GET /unsubscribe/{token}", "POST /unsubscribe/{token}"),
}
ON_ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def endpoints(of: Sequence[Endpoint]) -> pytest.MarkDecorator:
    names = [f"{endpoint.method} {endpoint.path}" for endpoint in of]
    return pytest.mark.parametrize("endpoint", of, ids=names)


def example_path(endpoint: Endpoint) -> str:
    return re.sub(r"\{\w+\}", "1", endpoint.path)


def test_only_these_routes_need_no_token() -> None:
    routes = [
        endpoint
        for endpoint in (*ENTRANCE, *ENDPOINTS, *PAGES, *OPERATORS)
        if endpoint not in PROTECTED
    ]
    assert {f"{endpoint.method} {endpoint.path}" for endpoint in routes} == OPEN


@ON_ONE_DATABASE
@endpoints(PROTECTED)
def test_every_protected_route_refuses_without_a_good_token(api: Api, endpoint: Endpoint) -> None:
    for authorization in (None, "", "Bearer", "Bearer x", "Basic eDp5", "Bearer \xff"):
        headers = (
            {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
        )
        answer = api.as_(None).request(endpoint.method, example_path(endpoint), headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


@ON_ONE_DATABASE
@endpoints([endpoint for endpoint in PROTECTED if not endpoint.any_scope])
def test_every_protected_route_refuses_a_token_without_its_scope(
    api: Api, db: Database, endpoint: Endpoint
) -> None:
    needed = endpoint.scope or Scope.OPERATOR
    others = frozenset(Scope) - {needed, Scope.CUSTOMER, Scope.OPERATOR}
    tokens = [make_customer(db, name="Others", scopes=others).token]
    tokens.append(api.token or "" if needed is Scope.OPERATOR else make_operator(db).token)
    for token in tokens:
        answer = api.as_(token).request(endpoint.method, example_path(endpoint))
        assert (answer.status_code, answer.json()["title"]) == (
            403,
            "The token's scope is too narrow",
        )
        assert (
            answer.headers["WWW-Authenticate"]
            == f'Bearer error="insufficient_scope", scope="{needed}"'
        )
    if needed is not Scope.OPERATOR:
        narrow = api.as_(make_customer(db, name="Narrow", scopes=frozenset({needed})).token)
        assert narrow.request(endpoint.method, example_path(endpoint)).status_code not in (401, 403)


def test_an_unknown_method_is_told_the_known_ones(api: Api) -> None:
    answer = api.request("DELETE", "/v2/plans")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert api.request("PUT", "/v2/plans/1/eligibility").headers["Allow"] == "GET, HEAD, POST"
    for path in ("/v2", "/v2/plans/", "/v1/plans", "/%00", "/v2/plans/1/eligibility/2/3"):
        unknown = api.get(path)
        assert (unknown.status_code, unknown.headers["Content-Type"]) == (
            404,
            "application/problem+json",
        )


def test_a_sane_request_id_is_kept(api: Api) -> None:
    for sent, kept in (("my-id.1_2", True), ("a" * 65, False), ("a b", False), ("ä", False)):
        answer = api.get("/v2/plans", headers={"X-Request-Id": sent.encode()})
        assert (answer.headers["X-Request-Id"] == sent) is kept


def test_a_client_has_the_limit_of_the_installation(
    config: Config, db: Database, clock: SetClock
) -> None:
    app = App(
        replace(config, requests_per_minute=60),
        open_for_test(config.database_url, "service"),
        clock,
    )
    customer = make_customer(db, name="Plain")
    with TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http:
        api = Api(http, customer.token, io.StringIO())
        answers = [api.get("/v2/plans") for _ in range(61)]
    assert [answer.status_code for answer in answers] == [200] * 60 + [429]
    told = [answer.headers.get("RateLimit-Remaining") for answer in answers]
    assert told == [None] * 54 + ["5", "4", "3", "2", "1", "0", "0"]
    assert answers[-1].headers["Retry-After"] == "60"
    left = [f'"minute";r={59 - number};t=60' for number in range(60)]
    assert [answer.headers["RateLimit"] for answer in answers] == [*left, '"minute";r=0;t=60']
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"minute";q=60;w=60'}


@ON_ONE_DATABASE
def test_every_answer_that_counts_has_the_rate_limit(
    api: Api, db: Database, clock: SetClock
) -> None:
    own = make_customer(db, name="Own", requests_per_minute=3)
    clock.advance(20)
    client = api.as_(own.token)
    answers = [
        client.get("/v2/plans/999"),
        client.get("/metrics"),
        client.get("/v2/me"),
        client.get("/v2/me"),
    ]
    assert [answer.status_code for answer in answers] == [404, 403, 200, 429]
    told = [
        (answer.headers["RateLimit"], answer.headers["RateLimit-Remaining"]) for answer in answers
    ]
    assert told == [(f'"minute";r={left};t=40', str(left)) for left in (2, 1, 0, 0)]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"minute";q=3;w=60'}
    for path in ("/healthz", "/v2/nowhere"):
        assert "RateLimit" not in api.get(path).headers
    assert "RateLimit" not in api.as_("unknown").get("/v2/plans").headers


def test_a_caller_reads_about_itself(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    clock.advance(18)
    scopes = ["customer", "eligibility:write", "plans:read", "plans:write"]
    expected = {
        "type": "callers",
        "account": {"id": customer.account_id, "name": "Example Health", "time_zone": None},
        "client": {"client_id": customer.client_id, "name": "Benefits feed"}, "scopes": scopes,
        "environment": "sandbox", "token_expires_at": "2026-11-20T14:00:00Z",
        "limits": {"requests_per_minute": 300_000, "remaining": 299_999, "reset_seconds": 42},
    }  # fmt: skip
    answer = api.get("/v2/me")
    assert answer.json() == {"links": {"self": "https://api.example.com/v2/me"}, "data": expected}
    assert answer.headers["Cache-Control"] == "no-store"
    narrow = api.as_(make_customer(db, name="Narrow", scopes=frozenset({Scope.PLANS_READ})).token)
    assert narrow.get("/v2/me").json()["data"]["scopes"] == ["plans:read"]
    operator = api.as_(make_operator(db).token).get("/v2/me").json()["data"]
    assert (operator["account"], operator["scopes"]) == (None, ["operator"])


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


@pytest.mark.parametrize(
    ("lines", "status"),
    [(["application/json"], 200), (["*/*"], 200), (["application/*;q=0.5, text/html"], 200), ([""], 200),
     (["text/html", "application/json"], 200), (["application/json", "text/html"], 200), (["text/html"], 406),
     (["application/json;q=0"], 406), (["*/*, application/json;q=0"], 406),
     (["application/json;q=0", "*/*"], 406),
     (["text/html", "text/plain"], 406), (["text/html," * 1_400], 406), (["*/*;q=0," * 1_400], 406),
     (["application/json;q=0;q=1"], 406), (["application/json;q=nan"], 406),
     (["application/json;q=-1"], 406), ([";" * 15_000], 406), (["," * 15_000], 406),
     (["x" * 1_000] * 17, 431)],
)  # fmt: skip
def test_an_accept_header_without_json_is_not_acceptable(
    api: Api, lines: list[str], status: int
) -> None:
    headers = [("Authorization", f"Bearer {api.token}"), *(("Accept", line) for line in lines)]
    del api.http.headers["Accept"]
    assert api.http.get("/v2/plans", headers=headers).status_code == status


def test_health_needs_no_token_and_metrics_needs_the_operators(api: Api, db: Database) -> None:
    assert api.as_(None).get("/healthz").json() == {"status": "ok"}
    assert api.as_(None).get("/readyz").json()["status"] == "ready"
    text = api.as_(make_operator(db).token).get("/metrics").text
    assert 'frontdesk_requests_total{method="GET",route="/healthz",status="200"} 1.0' in text
    assert api.get("/metrics").status_code == 403


def test_nothing_that_a_person_sent_is_in_a_log_a_metric_or_an_error(
    api: Api, db: Database, customer: Customer, capfd: pytest.CaptureFixture[str]
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    wrong: dict[str, Any] = {name: f"canary{name}" for name in member_body() if name != "member_id"}
    good = member_body(
        1, first_name="canary", last_name="canary", city="canary", metadata={"k": "canary"}
    )
    good |= {"external_id": "canary-1", "member_id": "canary-2", "email": "canary@example.com"}
    answers = [
        api.post(path, good),
        api.post(path, good | {"external_id": "canary-3"}),
        api.post(path, wrong | {"metadata": {"k": ["canary"]}}),
        api.post(path, "canary"),
        api.post(path, content=b'{"canary'),
        api.get("/v2/plans?external_id=canary"),
    ]
    metrics = api.as_(make_operator(db).token).get("/metrics").text
    api.http.__exit__(None, None, None)
    api.http.__enter__()
    assert [answer.status_code for answer in answers] == [201, 422, 422, 400, 400, 200]
    assert {fault["code"] for fault in answers[1].json()["errors"]} == {"not_unique"}
    captured = capfd.readouterr()
    errors = [answer.text for answer in answers[1:5]]
    for text in (*errors, metrics, api.log.getvalue(), captured.out, captured.err):
        assert "canary" not in text


def test_every_request_is_logged_with_ids_only(api: Api, customer: Customer) -> None:
    headers = {"X-Request-Id": "logged-1", "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    answer = api.get("/v2/plans", headers=headers)
    problem = api.get("/v2/plans/0")
    assert problem.json()["request_id"] == problem.headers["X-Request-Id"]
    api.http.__exit__(None, None, None)
    api.http.__enter__()
    lines = [json.loads(line) for line in api.log.getvalue().splitlines()]
    [line] = [line for line in lines if line["request_id"] == answer.headers["X-Request-Id"]]
    assert line | {"at": "", "ms": 0} == {
        "at": "", "level": "info", "event": "request", "request_id": "logged-1", "client": customer.client_id,
        "address": "testclient", "method": "GET", "route": "/v2/plans", "status": 200, "ms": 0,
        "trace_id": "ab" * 16,
    }  # fmt: skip

"""The OpenAPI 3.1 document: every endpoint with every status, header and example; built from the code's own tables."""

from typing import Any

from frontdesk import __version__
from frontdesk.access.scopes import Scope
from frontdesk.api.openapi_files import file_paths, file_schemas
from frontdesk.api.openapi_schemas import ref, schemas
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.parse import WARNINGS
from frontdesk.invitations import Reason
from frontdesk.web.problems import PROBLEMS

Json = dict[str, Any]

_EVERYWHERE = {"X-Request-Id": "The caller's own, if it sent a sane one; it finds the request in the log."}
_LIMITED = {
    "RateLimit-Limit": "Requests per minute of this client; only where a limit is set.",
    "RateLimit-Remaining": "What is left of them.",
    "RateLimit-Reset": "Seconds until the next minute.",
}
_ELIGIBILITY = {
    "Eligibility-Outcome": "created, updated, unchanged or moved (to the posted plan).",
    "Eligibility-Changed": "The fields that changed, comma-separated; absent when none did.",
    "Eligibility-Warnings": "Likely mistakes that are no faults: " + ", ".join(WARNINGS) + ".",
    "Ignored-Fields": "Unknown fields of the body, percent-encoded, at most 20.",
    "Invitation": "immediate, queued, or none; reason=" + "|".join(Reason) + ".",
}
_ETAG = {"ETag": "For If-None-Match and If-Match."}
_PROBLEM_HEADERS = {
    401: {"WWW-Authenticate": 'Bearer error="invalid_token"'},
    403: {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="…"'},
    405: {"Allow": "The methods of this path."},
    429: {"Retry-After": "Seconds."},
    503: {"Retry-After": "Seconds."},
}
_TOKEN_PROBLEMS = (400, 401, 403, 405, 406, 429, 500, 503)

_PLAN_EXAMPLE: Json = {
    "id": 1,
    "type": "plans",
    "external_id": "gold-2027",
    "name": "Gold",
    "description": None,
    "active": True,
    "created_at": "2016-09-28T23:33:32Z",
    "provider_group": {
        "id": 1,
        "type": "provider_groups",
        "name": "Primary Care",
        "external_id": None,
        "created_at": "2016-09-28T23:33:32Z",
    },
}
_QUEUE_EXAMPLE: Json = {
    "estimated_wait_time": 540,
    "queue_length": 2,
    "is_active": True,
    "cache_info": {"ttl": 15, "expires_at": "2026-11-21T09:00:15Z"},
}
_MEMBER_EXAMPLE: Json = {
    "id": 1001,
    "external_id": "AB 123356",
    "dob": "1977-01-11",
    "first_name": "Robin",
    "last_name": "Sample",
    "gender": "female",
    "member_id": "M-100200",
    "zipcode": "02134",
    "metadata": {"department": "North"},
}


def openapi_document(base_url: str) -> Json:
    """The whole document for the service at `base_url`."""
    scopes = {scope.value: f"What the scope {scope} allows." for scope in Scope}
    scopes[Scope.CUSTOMER] = "The whole /v2."
    flow = {"tokenUrl": f"{base_url}/oauth/token", "scopes": scopes}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Plans and member eligibility",
            "version": __version__,
            "description": "List plans with a live picture of each queue, edit a plan, and say who is eligible. "
            "Every error is problem details (RFC 9457); /problems lists them with every fault and warning code.",
        },
        "servers": [{"url": base_url}],
        "paths": _paths(base_url),
        "components": {
            "schemas": schemas() | file_schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "client": {"type": "oauth2", "flows": {"clientCredentials": flow}},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _paths(base_url: str) -> Json:
    return {
        "/v2/plans": {"get": _list_plans(base_url)},
        "/v2/plans/{plan_id}": {
            "parameters": [_plan_id()],
            "get": _show_plan(base_url),
            "patch": _patch_plan(base_url),
        },
        "/v2/plans/{plan_id}/eligibility": {"parameters": [_plan_id()], "post": _post_member(base_url)},
        **file_paths(lambda statuses: _problems(base_url, (*_TOKEN_PROBLEMS, *statuses))),
        "/oauth/token": {"post": _oauth(base_url, "Get an access token", "TokenRequest", ref("Token"))},
        "/oauth/revoke": {"post": _oauth(base_url, "Revoke an access token", "RevocationRequest", None)},
        "/openapi.json": {
            "get": _open("This document", {"application/json": {"schema": {"type": "object"}}})
        },
        "/docs": {"get": _open("The reference page", _HTML)},
        "/docs/{asset}": {"get": _open("A file of the reference page", _ANY, asset=True)},
        "/problems": {"get": _open("Every problem, fault and warning code", _HTML)},
        "/healthz": {"get": _open("Whether the process lives", _json("Health"))},
        "/readyz": {"get": _open("Whether it can serve", _json("Health"), (503,))},
        "/metrics": {"get": _metrics(base_url)},
    }


_HTML: Json = {"text/html": {"schema": {"type": "string"}}}
_ANY: Json = {"*/*": {"schema": {"type": "string"}}}


def _json(schema: str) -> Json:
    return {"application/json": {"schema": ref(schema)}}


def _plan_id() -> Json:
    return {"name": "plan_id", "in": "path", "required": True, "schema": {"type": "integer"}, "example": 1}


def _parameter(name: str, place: str, description: str, schema: Json | None = None) -> Json:
    return {"name": name, "in": place, "description": description, "schema": schema or {"type": "string"}}


def _headers(texts: dict[str, str]) -> Json:
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in texts.items()}


def _answer(description: str, schema: Json, example: Json, headers: dict[str, str]) -> Json:
    return {
        "description": description,
        "headers": _headers(_EVERYWHERE | _LIMITED | headers),
        "content": {"application/json": {"schema": schema, "example": example}},
    }


def _problems(base_url: str, statuses: tuple[int, ...]) -> Json:
    answers = {}
    for kind, problem in PROBLEMS.items():
        if problem.status in statuses:
            example = {
                "type": f"{base_url}/problems#{kind}",
                "title": problem.title,
                "status": problem.status,
                "detail": problem.happens,
                "instance": "/v2/plans/1",
                "request_id": "5f0c1a2b00000001",
            }
            if kind == "invalid":
                message = "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp"
                example["errors"] = [{"field": "dob", "code": "not_a_date", "message": message}]
            answers[str(problem.status)] = {
                "description": f"{problem.title}. {problem.happens}",
                "headers": _headers(_EVERYWHERE | _PROBLEM_HEADERS.get(problem.status, {})),
                "content": {"application/problem+json": {"schema": ref("Problem"), "example": example}},
            }
    return answers


def _plans_example(*, queue: bool) -> Json:
    plan = _PLAN_EXAMPLE | ({"queue_info": _QUEUE_EXAMPLE} if queue else {})
    return {"links": {"self": "https://api.example.com/v2/plans/1"}, "data": [plan]}


def _security(scope: Scope) -> list[Json]:
    return [{"token": []}, {"client": [scope.value]}]


def _list_plans(base_url: str) -> Json:
    page = {"type": "integer", "minimum": 1, "maximum": 1000}
    return {
        "operationId": "listPlans",
        "summary": "List the account's plans with their queues",
        "security": _security(Scope.PLANS_READ),
        "parameters": [
            _parameter("external_id", "query", "Only the plan with exactly this external_id."),
            _parameter("page[size]", "query", "Plans per page; without it everything is returned.", page),
            _parameter(
                "page[after]",
                "query",
                "The id after which the page starts.",
                {"type": "integer", "minimum": 0},
            ),
            _parameter("If-None-Match", "header", "An ETag of an earlier read."),
        ],
        "responses": {
            "200": _answer("The plans, by id.", ref("Plans"), _plans_example(queue=True), _ETAG),
            "304": {"description": "Nothing has changed.", "headers": _headers(_EVERYWHERE | _ETAG)},
            **_problems(base_url, (*_TOKEN_PROBLEMS, 422)),
        },
    }


def _show_plan(base_url: str) -> Json:
    return {
        "operationId": "showPlan",
        "summary": "One plan, in the same envelope",
        "security": _security(Scope.PLANS_READ),
        "parameters": [_parameter("If-None-Match", "header", "An ETag of an earlier read.")],
        "responses": {
            "200": _answer("The plan.", ref("Plans"), _plans_example(queue=True), _ETAG),
            "304": {"description": "Nothing has changed.", "headers": _headers(_EVERYWHERE | _ETAG)},
            **_problems(base_url, (*_TOKEN_PROBLEMS, 404)),
        },
    }


def _patch_plan(base_url: str) -> Json:
    return {
        "operationId": "changePlan",
        "summary": "Change a plan's name, description or external_id",
        "security": _security(Scope.PLANS_WRITE),
        "parameters": [
            _parameter("If-Match", "header", "Change only this version of the plan (the ETag of a read)."),
            _parameter("Prefer", "header", "`handling=strict` refuses unknown fields."),
        ],
        "requestBody": {"required": True, "content": _json("PlanPatch")},
        "responses": {
            "200": _answer(
                "The plan as it is now, without queue_info.",
                ref("Plans"),
                _plans_example(queue=False),
                _ETAG | {"Ignored-Fields": _ELIGIBILITY["Ignored-Fields"]},
            ),
            **_problems(base_url, (*_TOKEN_PROBLEMS, 404, 408, 409, 412, 413, 415, 422)),
        },
    }


def _post_member(base_url: str) -> Json:
    example = {field.name: field.example for field in FIELDS.values()}
    return {
        "operationId": "enrolMember",
        "summary": "Create or update an eligible member by external_id",
        "security": _security(Scope.ELIGIBILITY_WRITE),
        "parameters": [_parameter("Prefer", "header", "`handling=strict` refuses unknown fields.")],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ref("EligibleMember"), "example": example}},
        },
        "responses": {
            "200": _answer(
                "A record matched and was updated.", ref("Eligibility"), _MEMBER_EXAMPLE, _ELIGIBILITY
            ),
            "201": _answer(
                "No record matched; one was created.", ref("Eligibility"), _MEMBER_EXAMPLE, _ELIGIBILITY
            ),
            **_problems(base_url, (*_TOKEN_PROBLEMS, 404, 408, 413, 415, 422)),
        },
    }


def _oauth(base_url: str, summary: str, request: str, answer: Json | None) -> Json:
    error = {"application/json": {"schema": ref("OAuthError")}}
    schema = {"schema": ref(request)}
    forms = ("application/x-www-form-urlencoded", "multipart/form-data", "application/json")
    store = _headers(_EVERYWHERE | {"Cache-Control": "no-store"})
    good: Json = {"description": "Done.", "headers": store}
    if answer is not None:
        example = {
            "access_token": "zq3h…",
            "token_type": "bearer",
            "expires_in": 7200,
            "scope": "customer",
            "created_at": 1795244400,
        }
        good["content"] = {"application/json": {"schema": answer, "example": example}}
    return {
        "operationId": request[0].lower() + request[1:],
        "summary": summary,
        "description": "The client proves itself with HTTP Basic, or client_id and client_secret in the body.",
        "security": [{"basic": []}, {}],
        "requestBody": {"required": True, "content": dict.fromkeys(forms, schema)},
        "responses": {
            "200": good,
            **_problems(base_url, (405, 406, 408, 413, 415, 500, 503)),
            "400": {"description": "An error of RFC 6749.", "headers": store, "content": error},
            "401": {"description": "invalid_client", "headers": store, "content": error},
            "429": {
                "description": "Too many failed attempts; see Retry-After.",
                "headers": store,
                "content": error,
            },
        },
    }


def _open(summary: str, content: Json, problems: tuple[int, ...] = (), *, asset: bool = False) -> Json:
    statuses = (*problems, 404) if asset else problems
    operation: Json = {
        "summary": summary,
        "security": [],
        "responses": {
            "200": {"description": summary, "headers": _headers(_EVERYWHERE), "content": content},
            **_problems("", (*statuses, 405, 406, 500)),
        },
    }
    if asset:
        operation["parameters"] = [_parameter("asset", "path", "The file's name.") | {"required": True}]
    return operation


def _metrics(base_url: str) -> Json:
    return {
        "operationId": "metrics",
        "summary": "Prometheus metrics",
        "security": _security(Scope.OPERATOR),
        "responses": {
            "200": {
                "description": "Counts and durations; ids and routes only.",
                "headers": _headers(_EVERYWHERE),
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            **_problems(base_url, _TOKEN_PROBLEMS),
        },
    }

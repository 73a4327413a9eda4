"""What is said of each endpoint in the OpenAPI document: its words, parameters, bodies, good answers and own errors."""

from dataclasses import dataclass, field
from typing import Any

from frontdesk.api import openapi_examples as examples
from frontdesk.api.openapi_headers import header_refs
from frontdesk.api.openapi_problems import NO_STORE, oauth_errors
from frontdesk.api.openapi_schemas import ref
from frontdesk.eligibility.model import FAULT_CODES

Json = dict[str, Any]

_JSON = "application/json"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", _JSON)
_MEMBER_HEADERS = ("Eligibility-Outcome", "Invitation", "Cache-Control")
_MEMBER_MAY_HEADERS = ("Eligibility-Warnings", "Ignored-Fields")
_NEITHER = ("read_only", "repeated", "unknown_parameter", "wrong_state")


@dataclass(frozen=True, slots=True)
class Operation:
    """`answers` are the good ones by status; `problems` the kinds that the endpoint's form does not tell; `faults` the
    codes of its 422."""

    id: str
    tag: str
    summary: str
    answers: Json
    description: str = ""
    parameters: tuple[str | Json, ...] = ()
    body: Json | None = None
    problems: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    errors: Json = field(default_factory=dict)


def operations(base_url: str) -> dict[tuple[str, str], Operation]:
    """Every endpoint's, by method and path."""
    return _plans(base_url) | _eligibility() | _oauth() | _reference() | _operation()


def _plans(base_url: str) -> dict[tuple[str, str], Operation]:
    plan = "/v2/plans/{plan_id}"
    read = ("ETag", "Cache-Control")
    unchanged = {"description": "It is as it was when its `ETag` was sent.", "headers": _limited(*read)}
    return {
        ("GET", "/v2/plans"): Operation(
            "listPlans",
            "Plans",
            "List the account's plans with their queues",
            {
                "200": _answer("The plans, by id.", "Plans", examples.plan_lists(base_url), read)
                | {"links": _first_plan_links()},
                "304": unchanged,
            },
            parameters=("external_id", "page_size", "page_after", "if_none_match"),
            faults=("not_allowed", "repeated"),
        ),
        ("GET", plan): Operation(
            "showPlan",
            "Plans",
            "One plan, in the same envelope",
            {
                "200": _answer("The plan.", "Plans", _one(examples.one_plan(base_url)), read)
                | {"links": {"changeThisVersion": _link("changePlan", **{"header.If-Match": "$response.header.ETag"})}},
                "304": unchanged,
            },
            parameters=("if_none_match",),
            problems=("not_found",),
        ),
        ("PATCH", plan): Operation(
            "changePlan",
            "Plans",
            "Change a plan's name, description or external_id",
            {
                "200": _answer(
                    "The plan as it is now, without `queue_info`.",
                    "Plans",
                    _one(examples.changed_plan(base_url)),
                    ("ETag", "Ignored-Fields"),
                )
            },
            parameters=("if_match", "prefer"),
            body=_body("PlanPatch", _one(examples.PLAN_PATCH)),
            problems=("not_found", "conflict", "precondition_failed"),
            faults=("required", "wrong_type", "too_long", "control_character", "not_unique", "read_only", "unknown_field"),
        ),
    }  # fmt: skip


def _eligibility() -> dict[tuple[str, str], Operation]:
    created = _answer(
        "No record had the `external_id`; one was created.",
        "Eligibility",
        _one(examples.MEMBER_ANSWER),
        (*_MEMBER_HEADERS, *_MEMBER_MAY_HEADERS),
    )
    matched = _answer(
        "The record with the `external_id` was updated, or was like that already.",
        "Eligibility",
        _one(examples.CHANGED_MEMBER_ANSWER),
        (*_MEMBER_HEADERS, "Eligibility-Changed", *_MEMBER_MAY_HEADERS),
    )
    again = {"sendAgain": _link("enrolMember") | {"requestBody": "$response.body"}}
    return {
        ("POST", "/v2/plans/{plan_id}/eligibility"): Operation(
            "enrolMember",
            "Eligibility",
            "Create or update an eligible member by external_id",
            {"200": matched | {"links": again}, "201": created | {"links": again}},
            description="All or nothing: with a single fault nothing is written, and every fault is told. A member of "
            "another plan of the account moves to this one. Sending a request again is safe.",
            parameters=("prefer",),
            body=_body("EligibleMember", examples.member_requests()),
            problems=("not_found",),
            faults=tuple(code for code in FAULT_CODES if code not in _NEITHER),
        )
    }


def _oauth() -> dict[tuple[str, str], Operation]:
    proof = "The client proves itself with HTTP Basic, or with `client_id` and `client_secret` in the body."
    token = _answer("The token.", "Token", _one(examples.TOKEN), NO_STORE, limited=False)
    done = {
        "description": "The token is no longer valid, or never was: the two are told alike.",
        "headers": header_refs(NO_STORE),
    }
    problems = ("timeout", "too_large", "unsupported_media_type", "unavailable")
    return {
        ("POST", "/oauth/token"): Operation(
            "issueToken",
            "Access",
            "Get an access token (RFC 6749, client credentials)",
            {"200": token},
            description=proof,
            body=_forms("TokenRequest", examples.TOKEN_REQUEST),
            problems=problems,
            errors=oauth_errors(),
        ),
        ("POST", "/oauth/revoke"): Operation(
            "revokeToken",
            "Access",
            "Revoke an access token (RFC 7009)",
            {"200": done},
            description=f"{proof} In force within 5 seconds in every process.",
            body=_forms("RevocationRequest", examples.REVOCATION_REQUEST),
            problems=problems,
            errors=oauth_errors("invalid_request", "invalid_client", "rate_limited"),
        ),
    }


def _reference() -> dict[tuple[str, str], Operation]:
    page, kept = ("Content-Security-Policy",), ("Cache-Control",)
    kinds = ("text/javascript", "text/css", "image/png")
    return {
        ("GET", "/openapi.json"): Operation(
            "document",
            "Reference",
            "This document",
            {"200": _plain("OpenAPI 3.1.", {_JSON: {"schema": {"type": "object"}}}, kept)},
        ),
        ("GET", "/docs"): Operation(
            "referencePage",
            "Reference",
            "The reference page",
            {"200": _plain("It shows this document and sends requests.", _text("text/html"), page)},
        ),
        ("GET", "/docs/{asset}"): Operation(
            "referenceFile",
            "Reference",
            "A file of the reference page",
            {"200": _plain("The file.", _text(*kinds), kept)},
            parameters=("asset",),
            problems=("not_found",),
        ),
        ("GET", "/problems"): Operation(
            "listProblems",
            "Reference",
            "Every problem, fault code, warning and reason, in words",
            {"200": _plain("What the `type` of a problem points at.", _text("text/html"), page)},
        ),
    }


def _operation() -> dict[tuple[str, str], Operation]:
    alive, ready = {"status": "ok"}, {"status": "ready", "revision": "0001"}
    kept = ("Cache-Control",)
    return {
        ("GET", "/healthz"): Operation(
            "isAlive",
            "Operation",
            "Whether the process lives",
            {"200": _answer("It does.", "Health", _one(alive), kept, limited=False)},
        ),
        ("GET", "/readyz"): Operation(
            "isReady",
            "Operation",
            "Whether it can serve",
            {"200": _answer("The database answers and is up to date.", "Health", _one(ready), kept, limited=False)},
            problems=("unavailable",),
        ),
        ("GET", "/metrics"): Operation(
            "metrics",
            "Operation",
            "Prometheus metrics",
            {
                "200": {
                    "description": "Counts and durations, by route; nothing personal.",
                    "headers": _limited(*kept),
                    "content": _text("text/plain"),
                }
            },
        ),
    }  # fmt: skip


def _limited(*names: str) -> Json:
    """The headers of an answer to a client that may have a limit."""
    return header_refs((*names, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"))


def _answer(
    description: str, schema: str, named: Json, headers: tuple[str, ...], *, limited: bool = True
) -> Json:
    return {
        "description": description,
        "headers": _limited(*headers) if limited else header_refs(headers),
        "content": {_JSON: {"schema": ref(schema), "examples": named}},
    }


def _plain(description: str, content: Json, headers: tuple[str, ...]) -> Json:
    return {"description": description, "headers": header_refs(headers), "content": content}


def _text(*media_types: str) -> Json:
    return {media_type: {"schema": {"type": "string"}} for media_type in media_types}


def _body(schema: str, named: Json) -> Json:
    return {"required": True, "content": {_JSON: {"schema": ref(schema), "examples": named}}}


def _forms(schema: str, example: Json) -> Json:
    return {
        "required": True,
        "content": {form: {"schema": ref(schema), "example": example} for form in _FORMS},
    }


def _one(value: Json) -> Json:
    return {"example": {"value": value}}


def _link(operation_id: str, **parameters: str) -> Json:
    own = {"plan_id": "$request.path.plan_id"} | parameters
    return {"operationId": operation_id, "parameters": own}


def _first_plan_links() -> Json:
    first = {"plan_id": "$response.body#/data/0/id"}
    return {f"{name}OfFirst": _link(name, **first) for name in ("showPlan", "changePlan", "enrolMember")}

"""The OpenAPI 3.1 document: put together from the route table and what is said of each route; it knows no endpoint itself."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from frontdesk import __version__
from frontdesk.access.model import Scope
from frontdesk.api.openapi_files import file_operations, file_schemas
from frontdesk.api.openapi_headers import HEADERS, IN_PLACE
from frontdesk.api.openapi_operations import Operation, operations
from frontdesk.api.openapi_parameters import PARAMETERS
from frontdesk.api.openapi_problems import Problems
from frontdesk.api.openapi_schemas import schemas
from frontdesk.web.endpoint import Endpoint

Json = dict[str, Any]

_ABOUT = """\
List plans with a live picture of each queue, change a plan, and say who is eligible.

- Every path that answers to GET answers to HEAD too. Any other method is refused with 405, any other path with 404.
- Errors are problem details (RFC 9457), those of /oauth are errors of RFC 6749. [/problems](/problems) explains every \
problem, fault code, warning and reason.
- Unknown fields of a body, and unknown query parameters, are ignored. /v2 changes only by addition.
- What is not HTTP is refused by the server itself: an empty 400.
"""

_SCOPES = {
    Scope.CUSTOMER: "The whole of /v2.",
    Scope.PLANS_READ: "Read plans.",
    Scope.PLANS_WRITE: "Change plans.",
    Scope.ELIGIBILITY_WRITE: "Create and update eligible members, one by one and by file.",
    Scope.OPERATOR: "Operate the service; customers don't get it.",
}

_TAGS = {
    "Plans": "Plans and their queues.",
    "Eligibility": "Who is eligible under a plan.",
    "Access": "Access tokens: 2 hours, sent as `Authorization: Bearer …`.",
    "Reference": "This reference.",
    "Operation": "For those who run the service.",
}


def openapi_document(base_url: str, endpoints: Sequence[Endpoint]) -> Json:
    """The whole document for the service at `base_url`, as JSON values."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Plans and member eligibility", "version": __version__, "description": _ABOUT},
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": _paths(base_url, endpoints),
        "components": {
            "schemas": schemas() | file_schemas(),
            "headers": {name: header for name, header in HEADERS.items() if name not in IN_PLACE},
            "parameters": PARAMETERS,
            "securitySchemes": _security_schemes(base_url),
        },
    }


def _paths(base_url: str, endpoints: Sequence[Endpoint]) -> Json:
    described = operations(base_url) | file_operations(base_url)
    methods: defaultdict[str, set[str]] = defaultdict(set)
    for endpoint in endpoints:
        methods[endpoint.path] |= {endpoint.method} | ({"HEAD"} if endpoint.method == "GET" else set())
    paths: defaultdict[str, Json] = defaultdict(dict)
    for endpoint in endpoints:
        operation = described[endpoint.method, endpoint.path]
        allowed = ", ".join(sorted(methods[endpoint.path]))
        problems = Problems(endpoint, operation.id, base_url, methods=allowed, faults=operation.faults)
        paths[endpoint.path][endpoint.method.lower()] = _operation(endpoint, operation, problems)
    return dict(paths)


def _operation(endpoint: Endpoint, operation: Operation, problems: Problems) -> Json:
    names = ("plan_id", *operation.parameters) if "{plan_id}" in endpoint.path else operation.parameters
    answers = operation.answers | problems.answers(*operation.problems) | operation.errors
    described = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "security": _security(endpoint),
        "parameters": [
            {"$ref": f"#/components/parameters/{name}"} for name in (*names, "request_id")
        ],
        "requestBody": operation.body,
        "responses": dict(sorted(answers.items())),
    }  # fmt: skip
    return {name: value for name, value in described.items() if value or name == "security"}


def _security(endpoint: Endpoint) -> list[Json]:
    """An empty requirement stands for none: a client may prove itself in the body of a request to /oauth."""
    if endpoint.scope is not None:
        return [{"token": []}, {"client": [endpoint.scope.value]}]
    return [{"basic": []}, {}] if endpoint.path.startswith("/oauth/") else []


def _security_schemes(base_url: str) -> Json:
    scopes = {scope.value: text for scope, text in _SCOPES.items()}
    flow = {"tokenUrl": f"{base_url}/oauth/token", "scopes": scopes}
    return {
        "token": {"type": "http", "scheme": "bearer", "description": "An access token."},
        "client": {
            "type": "oauth2",
            "description": "A token that the client gets for itself.",
            "flows": {"clientCredentials": flow},
        },
        "basic": {"type": "http", "scheme": "basic", "description": "`client_id` and `client_secret`."},
    }

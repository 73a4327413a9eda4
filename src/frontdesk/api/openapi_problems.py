"""The error responses of the OpenAPI document: which ones an endpoint has follows from what it asks and accepts."""

import re
from typing import Any

from frontdesk.api.notation import explained, ref
from frontdesk.api.oauth_form import OAUTH_ERRORS
from frontdesk.api.openapi_components import HEADERS, OF_LIMITED_CLIENTS, OF_UNKNOWN_PARAMETERS, header_refs
from frontdesk.api.openapi_operations import Operation, operation_id
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.errors import Fault
from frontdesk.web.endpoint import Endpoint
from frontdesk.web.problems import PROBLEMS

Json = dict[str, Any]

REQUEST_ID = "5f0c1a2b00000001"
_IN_PATHS = {"plan_id": "1", "file_id": "7", "mapping_name": "hr-export", "asset": "page.css"}

OF_EVERY_ENDPOINT = ("method_not_allowed", "headers_too_large", "internal")
OF_TOKENS = ("malformed", "unauthorized", "forbidden", "rate_limited", "unavailable")
OF_BODIES = ("malformed", "timeout", "too_large", "unsupported_media_type", "unavailable")

_HEADERS: dict[str, tuple[str, ...]] = {
    "unauthorized": ("WWW-Authenticate",),
    "forbidden": ("WWW-Authenticate",),
    "method_not_allowed": ("Allow",),
    "timeout": ("Connection",),
    "too_large": ("Connection",),
    "rate_limited": ("Retry-After",),
    "unavailable": ("Retry-After",),
    "invalid_client": ("WWW-Authenticate",),
}
# The service sends these before it knows the client and its limit.
_BEFORE_LIMITS = {"unauthorized", "forbidden", "method_not_allowed", "headers_too_large"}
# The service sends these before it looks at names of the query and the body.
_BEFORE_NAMES = {"forbidden", "not_acceptable", "timeout", "too_large", "unsupported_media_type"}
# The service sends these before the handler of /oauth.
_BEFORE_OAUTH = {"method_not_allowed", "not_acceptable", "headers_too_large"}
_NO_STORE = ("Cache-Control", "Pragma")


class ErrorResponses:
    """Describes errors. Responses that several endpoints share are collected in `shared`, by name.

    `examples` are those of assets/examples.json: the words of each problem by the response's name, or by operation and
    status where an endpoint has words of its own.
    """

    def __init__(self, examples: Json, base_url: str) -> None:
        self.shared: dict[str, Json] = {}
        self._examples = examples
        self._base_url = base_url

    def of(self, endpoint: Endpoint, operation: Operation) -> Json:
        """The endpoint's errors by status."""
        kinds = {*OF_EVERY_ENDPOINT, *operation.problems}
        for applies, more in (
            (endpoint.scope, OF_TOKENS),
            (endpoint.takes_json, OF_BODIES),
            ("{" in endpoint.path and endpoint.method != "PUT", ("not_found",)),
            (endpoint.serves_json, ("not_acceptable",)),
            (operation.faults, ("invalid",)),
        ):
            kinds |= {*more} if applies else set()
        problems = {
            str(PROBLEMS[kind].status): self._problem(kind, endpoint, operation)
            for kind in PROBLEMS
            if kind in kinds
        }
        statuses = {OAUTH_ERRORS[code][0] for code in operation.oauth_errors}
        return problems | {str(status): self._oauth_error(status, operation) for status in sorted(statuses)}

    def _problem(self, kind: str, endpoint: Endpoint, operation: Operation) -> Json:
        problem, name = PROBLEMS[kind], operation_id(endpoint)
        own = f"{name} {problem.status}"
        shared = own if own in self._examples["problems"] else _response_name(kind, endpoint)
        details = self._examples["problems"][shared]
        # An example that is named for another kind, with the same status, is of that kind.
        kinds = {example: example if example in PROBLEMS else kind for example in details}
        texts = {kind: f"{PROBLEMS[kind].title}. {PROBLEMS[kind].happens}" for kind in kinds.values()}
        text = "\n\n".join(texts.values())
        more: Json = {}
        if kind == "invalid":
            faults = self._examples["faults"].get(name) or self._examples["faults"]["others"]
            more["errors"] = [Fault(*fault).serialize() for fault in faults]
            text += "\n\n" + explained({code: FAULT_CODES[code] for code in operation.faults})
        content = _content(
            "Problem",
            {
                example: self._example(kinds[example], endpoint) | more | _said(kinds[example], detail)
                for example, detail in details.items()
            },
        )
        response = {
            "description": text,
            "headers": _headers(kind, endpoint),
            "content": {"application/problem+json": content},
        }
        return response if kind == "invalid" or shared == own else self._share(shared, response)

    def _example(self, kind: str, endpoint: Endpoint) -> Json:
        return {
            "type": f"{self._base_url}/problems#{kind}",
            "title": PROBLEMS[kind].title,
            "status": PROBLEMS[kind].status,
            "instance": re.sub(r"{(\w+)}", lambda found: _IN_PATHS[found[1]], endpoint.path),
            "request_id": REQUEST_ID,
        }

    def _oauth_error(self, status: int, operation: Operation) -> Json:
        codes = [code for code in operation.oauth_errors if OAUTH_ERRORS[code][0] == status]
        headers = header_refs((*_NO_STORE, *(name for code in codes for name in _HEADERS.get(code, ()))))
        if status == 429:
            headers |= header_refs(OF_LIMITED_CLIENTS)
        if status == 401:
            headers["WWW-Authenticate"] = HEADERS["WWW-Authenticate"] | {"example": 'Basic realm="frontdesk"'}
        said = self._examples["oauth_errors"]
        content = _content(
            "OAuthError", {code: {"error": code, "error_description": said[code]} for code in codes}
        )
        response = {
            "description": explained({code: OAUTH_ERRORS[code][1] for code in codes}),
            "headers": headers,
            "content": {"application/json": content},
        }
        return response if status == 400 else self._share(f"OAuth{_pascal(codes[0])}", response)

    def _share(self, name: str, response: Json) -> Json:
        self.shared.setdefault(name, response)
        return {"$ref": f"#/components/responses/{name}"}


def _said(kind: str, detail: str) -> Json:
    """The words of an answer; of a wrong state they are a fault too."""
    faults = {"errors": [Fault("state", kind, detail).serialize()]} if kind == "wrong_state" else {}
    return {"detail": detail} | faults


def _content(schema: str, examples: Json) -> Json:
    return {"schema": ref(schema), "examples": {name: {"value": value} for name, value in examples.items()}}


def _headers(kind: str, endpoint: Endpoint) -> Json:
    names = _HEADERS.get(kind, ())
    if _is_oauth(kind, endpoint):
        names += _NO_STORE
    elif kind not in _BEFORE_LIMITS:
        names += OF_LIMITED_CLIENTS
        names += ("Ignored-Fields", *OF_UNKNOWN_PARAMETERS) if kind not in _BEFORE_NAMES else ()
    headers = header_refs(names)
    if kind == "forbidden":
        example = f'Bearer error="insufficient_scope", scope="{endpoint.scope}"'
        # It is not sent when the account is suspended.
        headers["WWW-Authenticate"] = HEADERS["WWW-Authenticate"] | {"example": example, "required": False}
    return headers


def _is_oauth(kind: str, endpoint: Endpoint) -> bool:
    """Whether the handler of /oauth answers, which forbids storing its answers."""
    return endpoint.path.startswith("/oauth/") and kind not in _BEFORE_OAUTH


def _response_name(kind: str, endpoint: Endpoint) -> str:
    """The response's name. Endpoints have the same name where they answer alike."""
    if kind == "not_found":
        nouns = {"{file_id}": "File", "{mapping_name}": "Mapping", "{plan_id}": "Plan", "{asset}": "Page"}
        return "NoSuch" + next(nouns[part] for part in nouns if part in endpoint.path)
    if kind == "forbidden" and endpoint.scope:
        return f"Lacks{_pascal(endpoint.scope)}"
    if kind == "malformed" and not endpoint.takes_json:
        return "TwoTokens"
    return ("OAuth" if _is_oauth(kind, endpoint) else "") + _pascal(kind)


def _pascal(name: str) -> str:
    return "".join(map(str.capitalize, re.split("[_:]", name)))

"""The error responses of the OpenAPI document: which ones an endpoint has follows from what it asks and accepts."""

from typing import Any

from frontdesk.api.bodies import OAUTH_ERRORS, explained
from frontdesk.api.openapi_components import HEADERS, OF_LIMITED_CLIENTS, header_refs
from frontdesk.api.openapi_operations import Operation
from frontdesk.api.openapi_schemas import ref
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.errors import Fault
from frontdesk.web.endpoint import Endpoint
from frontdesk.web.problems import PROBLEMS

Json = dict[str, Any]

REQUEST_ID = "5f0c1a2b00000001"

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
# The service sends these before the handler of /oauth, which forbids storing its answers.
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
            ("{" in endpoint.path, ("not_found",)),
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
        own = f"{operation.id} {PROBLEMS[kind].status}"
        name = own if own in self._examples["problems"] else _response_name(kind, endpoint)
        details = self._examples["problems"][name]
        example = {
            "type": f"{self._base_url}/problems#{kind}",
            "title": PROBLEMS[kind].title,
            "status": PROBLEMS[kind].status,
            "instance": _example_path(endpoint.path),
            "request_id": REQUEST_ID,
        }
        text = f"{PROBLEMS[kind].title}. {PROBLEMS[kind].happens}"
        if kind == "invalid":
            faults = self._examples["faults"][operation.id]
            example["errors"] = [Fault(*fault).serialize() for fault in faults]
            text += "\n\n" + explained({code: FAULT_CODES[code] for code in operation.faults})
        response = {
            "description": text,
            "headers": _headers(kind, endpoint),
            "content": {
                "application/problem+json": {
                    "schema": ref("Problem"),
                    "examples": {
                        name: {"value": example | {"detail": detail}} for name, detail in details.items()
                    },
                }
            },
        }
        return response if kind == "invalid" or name == own else self._share(name, response)

    def _oauth_error(self, status: int, operation: Operation) -> Json:
        codes = [code for code in operation.oauth_errors if OAUTH_ERRORS[code][0] == status]
        names = _NO_STORE + tuple(name for code in codes for name in _HEADERS.get(code, ()))
        headers = header_refs(names)
        if status == 401:
            headers["WWW-Authenticate"] = _with_example("WWW-Authenticate", 'Basic realm="frontdesk"')
        said = self._examples["oauth_errors"]
        response = {
            "description": explained({code: OAUTH_ERRORS[code][1] for code in codes}),
            "headers": headers,
            "content": {
                "application/json": {
                    "schema": ref("OAuthError"),
                    "examples": {
                        code: {"value": {"error": code, "error_description": said[code]}} for code in codes
                    },
                }
            },
        }
        return response if status == 400 else self._share(f"OAuth{_pascal(codes[0])}", response)

    def _share(self, name: str, response: Json) -> Json:
        self.shared.setdefault(name, response)
        return {"$ref": f"#/components/responses/{name}"}


def _headers(kind: str, endpoint: Endpoint) -> Json:
    is_oauth = endpoint.path.startswith("/oauth/")
    names = _HEADERS.get(kind, ())
    if is_oauth and kind not in _BEFORE_OAUTH:
        names += _NO_STORE
    elif kind not in _BEFORE_LIMITS:
        names += OF_LIMITED_CLIENTS
    headers = header_refs(names)
    if kind == "forbidden":
        example = f'Bearer error="insufficient_scope", scope="{endpoint.scope}"'
        headers["WWW-Authenticate"] = _with_example("WWW-Authenticate", example)
    if kind == "rate_limited":
        headers |= {name: HEADERS[name] | {"required": True} for name in OF_LIMITED_CLIENTS}
    return headers


def _response_name(kind: str, endpoint: Endpoint) -> str:
    """The response's name. Endpoints have the same name where they answer alike."""
    if kind == "not_found":
        missing = (
            "File" if "{file_id}" in endpoint.path else "Plan" if "{plan_id}" in endpoint.path else "Page"
        )
        return f"NoSuch{missing}"
    if kind == "forbidden" and endpoint.scope:
        return f"Lacks{_pascal(endpoint.scope)}"
    if kind == "malformed" and not endpoint.takes_json:
        return "TwoTokens"
    is_oauth = endpoint.path.startswith("/oauth/") and kind not in _BEFORE_OAUTH
    return ("OAuth" if is_oauth else "") + _pascal(kind)


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.replace(":", "_").split("_"))


def _with_example(header: str, example: str) -> Json:
    return HEADERS[header] | {"example": example}


def _example_path(path: str) -> str:
    return path.replace("{plan_id}", "1").replace("{file_id}", "7").replace("{asset}", "page.css")

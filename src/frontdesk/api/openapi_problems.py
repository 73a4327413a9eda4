"""The errors of each endpoint for the OpenAPI document: which can happen follows from what the endpoint asks and takes."""

from typing import Any

from frontdesk.api.openapi_examples import DETAILS, DETAILS_OF, INVALID, REQUEST_ID
from frontdesk.api.openapi_headers import HEADERS, OF_LIMITED_CLIENTS, header_refs
from frontdesk.api.openapi_schemas import OAUTH_ERRORS, ref
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.errors import Fault
from frontdesk.web.endpoint import Endpoint
from frontdesk.web.problems import PROBLEMS

Json = dict[str, Any]

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
}
# These are told before it is known which client asks.
_BEFORE_LIMITS = {"unauthorized", "forbidden", "method_not_allowed", "headers_too_large"}
# Of /oauth, these are told by the door, before the request's own handler is asked.
_BEFORE_OAUTH = {"method_not_allowed", "not_acceptable", "headers_too_large"}
NO_STORE = ("Cache-Control", "Pragma")


class Problems:
    """The problem answers of one endpoint. `faults` are the codes of its 422; `more` are kinds that it alone knows."""

    def __init__(
        self,
        endpoint: Endpoint,
        operation_id: str,
        base_url: str,
        *,
        methods: str,
        faults: tuple[str, ...] = (),
    ) -> None:
        self._endpoint = endpoint
        self._operation_id = operation_id
        self._base_url = base_url
        self._methods = methods
        self._faults = faults

    def answers(self, *more: str) -> Json:
        """By status, in order."""
        kinds = {*OF_EVERY_ENDPOINT, *more}
        if self._endpoint.scope is not None:
            kinds |= {*OF_TOKENS}
        if self._endpoint.takes_json:
            kinds |= {*OF_BODIES}
        if self._endpoint.serves_json:
            kinds.add("not_acceptable")
        if self._faults:
            kinds.add("invalid")
        return {str(PROBLEMS[kind].status): self._answer(kind) for kind in PROBLEMS if kind in kinds}

    def _answer(self, kind: str) -> Json:
        problem = PROBLEMS[kind]
        content = {"schema": ref("Problem"), "examples": self._examples(kind)}
        text = f"{problem.title}. {problem.happens}"
        if kind == "invalid":
            text += "\n\n" + "\n".join(f"- `{code}`: {FAULT_CODES[code]}" for code in self._faults)
        return {
            "description": text,
            "headers": self._headers(kind),
            "content": {"application/problem+json": content},
        }

    def _headers(self, kind: str) -> Json:
        names = _HEADERS.get(kind, ())
        if self._endpoint.scope is not None and kind not in _BEFORE_LIMITS:
            names += OF_LIMITED_CLIENTS
        if self._endpoint.path.startswith("/oauth/") and kind not in _BEFORE_OAUTH:
            names += NO_STORE
        headers = header_refs(names)
        if kind == "method_not_allowed":
            headers["Allow"] = HEADERS["Allow"] | {"example": self._methods}
        if kind == "forbidden":
            example = f'Bearer error="insufficient_scope", scope="{self._endpoint.scope}"'
            headers["WWW-Authenticate"] = HEADERS["WWW-Authenticate"] | {"example": example}
        if kind == "rate_limited":
            headers |= {name: HEADERS[name] | {"required": True} for name in OF_LIMITED_CLIENTS}
        return headers

    def _examples(self, kind: str) -> Json:
        """Named by what went wrong, with the words of the service."""
        details = (
            DETAILS_OF.get((self._operation_id, kind)) or DETAILS.get(kind) or {kind: PROBLEMS[kind].happens}
        )
        if kind == "forbidden":
            details = {kind: f"The token lacks the scope {self._endpoint.scope}."}
        if kind == "not_found":
            details = {kind: f"There is {_missing(self._endpoint.path)}."}
        if kind == "malformed" and not self._endpoint.takes_json:
            details = {"two_tokens": details["two_tokens"]}
        if kind == "unsupported_media_type" and self._endpoint.path.startswith("/oauth/"):
            details = {"type": "Send a form (multipart or urlencoded) or JSON, not compressed."}
        return {name: {"value": self._example(kind, detail)} for name, detail in details.items()}

    def _example(self, kind: str, detail: str) -> Json:
        example = {
            "type": f"{self._base_url}/problems#{kind}",
            "title": PROBLEMS[kind].title,
            "status": PROBLEMS[kind].status,
            "detail": detail,
            "instance": _example_path(self._endpoint.path),
            "request_id": REQUEST_ID,
        }
        if kind == "invalid":
            _, _, faults = INVALID[self._operation_id]
            example["errors"] = [Fault(*fault).serialize() for fault in faults]
        return example


def _missing(path: str) -> str:
    """What a path leads to when it leads nowhere; another account's is told alike."""
    if "{file_id}" in path:
        return "no such eligibility file"
    return "no such plan" if "{plan_id}" in path else "nothing at this address"


def _example_path(path: str) -> str:
    return path.replace("{plan_id}", "1").replace("{file_id}", "7").replace("{asset}", "page.css")


def oauth_errors(*codes: str) -> Json:
    """The answers with one of these errors of RFC 6749 (all of them if none is named), by status."""
    errors = {code: OAUTH_ERRORS[code] for code in codes} or OAUTH_ERRORS
    statuses = sorted({status for status, _ in errors.values()})
    return {
        str(status): _oauth_answer(
            status, {code: text for code, (of, text) in errors.items() if of == status}
        )
        for status in statuses
    }


def _oauth_answer(status: int, errors: dict[str, str]) -> Json:
    more = {401: ("WWW-Authenticate",), 429: ("Retry-After",)}.get(status, ())
    headers = header_refs((*NO_STORE, *more))
    if status == 401:
        headers["WWW-Authenticate"] = HEADERS["WWW-Authenticate"] | {"example": 'Basic realm="frontdesk"'}
    examples = {code: {"value": {"error": code, "error_description": _SAID[code]}} for code in errors}
    return {
        "description": "\n".join(f"- `{code}`: {text}" for code, text in errors.items()),
        "headers": headers,
        "content": {"application/json": {"schema": ref("OAuthError"), "examples": examples}},
    }


_SAID = {
    "invalid_request": "The client authenticates in two ways at once.",
    "invalid_scope": "The client does not have every scope that was asked for.",
    "unsupported_grant_type": "Only client_credentials is supported.",
    "invalid_client": "The client is unknown or its secret is wrong.",
    "rate_limited": "Too many failed attempts.",
}

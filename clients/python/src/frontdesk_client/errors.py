"""Errors of the client: a class for each kind of problem that the service answers (its page
/problems explains them).

Decide by the class and by `error.codes`; sentences may change. No message holds a value that was
sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, ClassVar, NamedTuple

import httpx


class Fault(NamedTuple):
    """One field or parameter at fault. `did_you_mean` is the similar name that exists, if the name
    is unknown.
    """

    field: str
    code: str
    message: str
    did_you_mean: str | None = None


class FrontdeskError(Exception):
    """Any error of this client."""


class Unreachable(FrontdeskError):
    """No answer came, in all attempts; `__cause__` is the last failure. The request may have been
    carried out.
    """


class UnexpectedAnswer(FrontdeskError):
    """The answer is not one of the service: a proxy may have answered, or the base URL is wrong."""


class FileNotFinished(FrontdeskError):
    """The time to wait for a file is over. The file continues; wait again, or read it later."""


class FileNotLoaded(FrontdeskError):
    """The file failed, is held or was cancelled. `problem` is the file's own: code, message and
    place.
    """

    def __init__(self, state: str, problem: Mapping[str, Any] | None) -> None:
        self.state = state
        self.problem = problem
        reason = f": {problem['code']}: {problem['message']}" if problem else "."
        super().__init__(f"The file is {state}{reason}")


class BadSignature(FrontdeskError):
    """The message is not signed by any of the secrets, or is too old. Answer it with 401, and do
    nothing else.
    """


class AuthenticationFailed(FrontdeskError):
    """The service gives no token. `error` is the word of RFC 6749, such as `invalid_client` or
    `invalid_scope`.
    """

    def __init__(self, response: httpx.Response, error: str, description: str) -> None:
        self.error = error
        self.status = response.status_code
        self.retry_after = retry_after(response)
        super().__init__(f"{error}: {description}")


class ApiError(FrontdeskError):
    """The service refused the request, or failed. Subclasses are the kinds of problems."""

    kind: ClassVar[str] = ""

    def __init__(self, response: httpx.Response, problem: Mapping[str, Any]) -> None:
        self.status = response.status_code
        self.title = str(problem.get("title", response.reason_phrase))
        self.detail = str(problem.get("detail", ""))
        self.faults = tuple(read_fault(fault) for fault in problem.get("errors", ()))
        self.did_you_mean = dict(problem.get("did_you_mean", {}))
        self.request_id = str(problem.get("request_id", response.headers.get("X-Request-Id", "")))
        self.retry_after = retry_after(response)
        faults = "; ".join(
            f"{fault.field}: {fault.code} ({fault.message})" for fault in self.faults
        )
        words = f"{self.status} {self.kind or self.title}: {faults or self.detail or 'no details'}"
        super().__init__(f"{words} [request {self.request_id}]" if self.request_id else words)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of all faults."""
        return frozenset(fault.code for fault in self.faults)


class Malformed(ApiError):
    kind = "malformed"


class Unauthorized(ApiError):
    kind = "unauthorized"


class Forbidden(ApiError):
    kind = "forbidden"


class SecondPersonNeeded(ApiError):
    kind = "second_person_needed"


class Suspended(ApiError):
    kind = "suspended"


class NotFound(ApiError):
    kind = "not_found"


class MethodNotAllowed(ApiError):
    kind = "method_not_allowed"


class NotAcceptable(ApiError):
    kind = "not_acceptable"


class RequestTimeout(ApiError):
    kind = "timeout"


class Conflict(ApiError):
    kind = "conflict"


class WrongState(ApiError):
    kind = "wrong_state"


class Gone(ApiError):
    kind = "gone"


class PreconditionFailed(ApiError):
    kind = "precondition_failed"


class TooLarge(ApiError):
    kind = "too_large"


class UnsupportedMediaType(ApiError):
    kind = "unsupported_media_type"


class Invalid(ApiError):
    kind = "invalid"


class RateLimited(ApiError):
    kind = "rate_limited"


class HeadersTooLarge(ApiError):
    kind = "headers_too_large"


class InternalError(ApiError):
    kind = "internal"


class Unavailable(ApiError):
    kind = "unavailable"


KINDS = {kind.kind: kind for kind in ApiError.__subclasses__()}


def read_fault(fault: Mapping[str, Any]) -> Fault:
    field, code, message = (str(fault.get(name, "")) for name in ("field", "code", "message"))
    return Fault(field, code, message, fault.get("did_you_mean"))


def error_of(response: httpx.Response) -> ApiError | AuthenticationFailed:
    """The error that an answer stands for. A kind that is newer than this client is an ApiError."""
    content = json_object(response)
    if isinstance(content.get("error"), str):
        return AuthenticationFailed(
            response, content["error"], str(content.get("error_description", ""))
        )
    kind = str(content.get("type", "")).rpartition("#")[2]
    return KINDS.get(kind, ApiError)(response, content)


def json_object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer; an empty one where it has none."""
    try:
        content = json.loads(response.content)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def retry_after(response: httpx.Response) -> float | None:
    """Seconds until the service wants the request again, or None. The header has seconds or a date."""
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time(), 0.0)
    except ValueError:
        return None

"""Errors as problem details (RFC 9457). No message repeats a value that was sent."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from frontdesk import codes, errors
from frontdesk.codes import Code, Kind, Remedy, Where, complete
from frontdesk.idempotency.model import KeyInFlight
from frontdesk.web.request import Request
from frontdesk.web.response import Header, HttpError, Response

RETRY_AFTER_SECONDS = 1
UNKNOWN_NAMES = (codes.faults.UNKNOWN_FIELD, codes.faults.UNKNOWN_PARAMETER)


class Problem(NamedTuple):
    """A kind of problem in HTTP: its status, its title, and a sentence that says when it happens."""

    status: int
    title: str
    sentence: str


class RemedyOperation(NamedTuple):
    """The operation that a remedy takes. `note` says what its request has to be like."""

    method: str
    path: str
    note: str = ""

    def shown(self, remedy: Remedy, ids: Mapping[str, object]) -> dict[str, str]:
        """The remedy as a problem shows it. An id that is not known stays a name in braces."""
        path = self.path
        for name, value in ids.items():
            path = path.replace("{" + name + "}", str(value))
        shown = {"action": remedy.value, "method": self.method, "path": path}
        return shown | ({"note": self.note} if self.note else {})


PROBLEMS: dict[Kind, Problem] = complete(
    Kind,
    {
        Kind.MALFORMED: Problem(
            400,
            "The request can't be read",
            "Not JSON, not an object, duplicate keys, bad framing.",
        ),
        Kind.UNAUTHORIZED: Problem(
            401, "No valid access token", "The token is missing, unknown, expired or revoked."
        ),
        Kind.FORBIDDEN: Problem(
            403, "The token's scope is too narrow", "The token lacks the scope of this endpoint."
        ),
        Kind.SECOND_PERSON_NEEDED: Problem(
            403, "Another person has to approve", codes.faults.SECOND_PERSON_NEEDED.sentence
        ),
        Kind.SUSPENDED: Problem(
            403,
            "The account is suspended",
            "The account is suspended; the operator of the service can resume it.",
        ),
        Kind.NOT_FOUND: Problem(
            404, "Not found", "There is nothing here, or it is another account's."
        ),
        Kind.METHOD_NOT_ALLOWED: Problem(
            405, "Method not allowed", "Allow names the methods of this path."
        ),
        Kind.NOT_ACCEPTABLE: Problem(
            406, "Only JSON is served", "The Accept header excludes application/json."
        ),
        Kind.TIMEOUT: Problem(408, "The request took too long", "The body did not arrive in time."),
        Kind.CONFLICT: Problem(
            409,
            "In conflict with what is stored",
            "Two callers changed the same thing at once; or a code in `errors` says more.",
        ),
        Kind.WRONG_STATE: Problem(
            409, "Not possible in this state", codes.faults.WRONG_STATE.sentence
        ),
        Kind.GONE: Problem(
            410,
            "No longer there",
            "The feed of events does not go on from this place; a code in `errors` says why.",
        ),
        Kind.PRECONDITION_FAILED: Problem(
            412,
            "A condition does not hold",
            "If-Match names an old version, or If-None-Match a member that is stored.",
        ),
        Kind.TOO_LARGE: Problem(
            413,
            "The body is too large",
            "The body is larger than this endpoint takes: 64 KiB, or what its description says.",
        ),
        Kind.UNSUPPORTED_MEDIA_TYPE: Problem(
            415,
            "This type of body is not taken",
            "The body is declared as something other than what is read here.",
        ),
        Kind.INVALID: Problem(
            422, "Some fields are not valid", "`errors` names every field at fault."
        ),
        Kind.RATE_LIMITED: Problem(
            429, "Too many requests", "Retry-After says when the next one is welcome."
        ),
        Kind.HEADERS_TOO_LARGE: Problem(
            431,
            "The headers are too large",
            "Names and values of the request's headers have more than 16 KiB.",
        ),
        Kind.INTERNAL: Problem(
            500,
            "Something went wrong here",
            "A fault of the service; the request id finds it in the log.",
        ),
        Kind.UNAVAILABLE: Problem(
            503, "Not available now", "The database can't answer; sending it again is safe."
        ),
    },
)


def status_of(code: Code) -> int:
    """The status of the answer that carries the code. Raises ValueError for a code of no answer."""
    if code.kind is None:
        raise ValueError(f"no answer is refused for {code}")
    return PROBLEMS[code.kind].status


def fault_sentences() -> dict[str, str]:
    """The sentence of each code of `errors[]` as the reference shows it."""
    return {code: shown_sentence(code) for code in codes.of(Where.FAULT)}


def shown_sentence(code: Code) -> str:
    """The sentence of a code, with the status of a fault that is of no field."""
    if code.where is not Where.FAULT or code.kind is Kind.INVALID or code.is_kind:
        return code.sentence
    return f"{code.sentence.removesuffix('.')} ({status_of(code)})."


def problem_response(
    error: Exception,
    request: Request,
    base_url: str,
    remedies: Mapping[Remedy, RemedyOperation] = MappingProxyType({}),
) -> Response:
    """The response for any exception. One that is not the product's own becomes a 500 without
    details.
    """
    kind = error.kind if isinstance(error, HttpError | errors.FrontdeskError) else Kind.INTERNAL
    detail = getattr(error, "detail", "") if kind is not Kind.INTERNAL else ""
    content = problem_content(
        base_url,
        kind,
        detail,
        instance=request.target.partition("?")[0],
        request_id=request.request_id,
    )
    did_you_mean = dict(request.did_you_mean)
    if isinstance(error, errors.FrontdeskError) and error.faults:
        faults = [fault.serialize() for fault in error.faults]
        for fault in faults:
            if fault["code"] in UNKNOWN_NAMES and fault["field"] in did_you_mean:
                fault["did_you_mean"] = did_you_mean.pop(fault["field"])
        content["errors"] = faults
    if isinstance(error, errors.FrontdeskError) and error.remedy is not None:
        operation = remedies.get(error.remedy)
        ids = {**request.path_parameters, **error.ids}
        if operation is not None:
            content["remedy"] = operation.shown(error.remedy, ids)
    if did_you_mean:
        content["did_you_mean"] = did_you_mean
    return Response(
        PROBLEMS[kind].status,
        json.dumps(content).encode(),
        _headers(error),
        b"application/problem+json",
    )


def problem_content(
    base_url: str, kind: Kind, detail: str, *, instance: str, request_id: str
) -> dict[str, Any]:
    problem = PROBLEMS[kind]
    return {
        "type": f"{base_url}/problems#{kind}",
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.sentence,
        "instance": instance,
        "request_id": request_id,
    }


def _headers(error: Exception) -> tuple[Header, ...]:
    match error:
        case HttpError():
            return error.headers
        case errors.Unauthorized():
            return ((b"www-authenticate", b'Bearer error="invalid_token"'),)
        case errors.Forbidden():
            challenge = f'Bearer error="insufficient_scope", scope="{error.scope}"'
            return ((b"www-authenticate", challenge.encode()),)
        case errors.RateLimited():
            return ((b"retry-after", str(error.retry_after_seconds).encode()),)
        case errors.Unavailable() | KeyInFlight():
            return ((b"retry-after", str(RETRY_AFTER_SECONDS).encode()),)
    return ()

"""Errors as problem details (RFC 9457). No message repeats a value that was sent."""

import json
import re
from typing import Any, NamedTuple

from frontdesk import errors
from frontdesk.idempotency.model import KeyInFlight
from frontdesk.web.request import Request
from frontdesk.web.response import Header, HttpError, Response

RETRY_AFTER_SECONDS = 1
UNKNOWN_NAMES = ("unknown_field", "unknown_parameter")


class ProblemType(NamedTuple):
    """A kind of error: its HTTP status, its title, and when it happens (for the reference)."""

    status: int
    title: str
    happens: str


# Status, kind, title, and when it happens.
_PROBLEMS = """\
400 malformed: The request can't be read. Not JSON, not an object, duplicate keys, bad framing.
401 unauthorized: No valid access token. The token is missing, unknown, expired or revoked.
403 forbidden: The token's scope is too narrow. The token lacks the scope of this endpoint.
403 second_person_needed: Another person has to approve. The account wants another client or operator than the uploader for this.
403 suspended: The account is suspended. The account is suspended; the operator of the service can resume it.
404 not_found: Not found. There is nothing here, or it is another account's.
405 method_not_allowed: Method not allowed. Allow names the methods of this path.
406 not_acceptable: Only JSON is served. The Accept header excludes application/json.
408 timeout: The request took too long. The body did not arrive in time.
409 conflict: In conflict with what is stored. Two callers changed the same thing at once; or a code in `errors` says more.
409 wrong_state: Not possible in this state. The thing is in a state in which that can't be done to it.
412 precondition_failed: A condition does not hold. If-Match names an old version, or If-None-Match a member that is stored.
413 too_large: The body is too large. The body is larger than this endpoint takes: 64 KiB, or what its description says.
415 unsupported_media_type: This type of body is not taken. The body is declared as something other than what is read here.
422 invalid: Some fields are not valid. `errors` names every field at fault.
429 rate_limited: Too many requests. Retry-After says when the next one is welcome.
431 headers_too_large: The headers are too large. Names and values of the request's headers have more than 16 KiB.
500 internal: Something went wrong here. A fault of the service; the request id finds it in the log.
503 unavailable: Not available now. The database can't answer; sending it again is safe.
"""
PROBLEMS = {
    kind: ProblemType(int(status), title, happens)
    for status, kind, title, happens in re.findall(r"(\d{3}) (\w+): (.*?)\. (.*)", _PROBLEMS)
}

# Codes of `errors` that say more exactly what a problem of another kind than `invalid` is.
QUOTA_CODES = {
    "too_many_uploads": "The account has as many open uploads as it may have (429).",
    "too_many_files": "The account has as many eligibility files that wait or run as it may have (429).",
    "too_many_bytes": "The account's eligibility files that wait or run have as many bytes as they may have (413).",
    "too_many_taken": "Too many records of the client had the value of another record; new keys are taken again tomorrow (429).",
    "suggestion_open": "Another mapping is being suggested for this account (429).",
    "report_open": "Another whole report is on its way to this client (429).",
}
INTENT_CODES = {
    "no_such_member": "No member of the account has this external_id; If-Match: * and only=update create none (404).",
    "member_exists": "A member of the account has this external_id already; If-None-Match: * updates none (412).",
    "other_plan": "The member is under another plan of the account; move=false moves none (409).",
}
CONFLICT_CODES = {
    "idempotency_in_flight": "A request with this Idempotency-Key is under way; send it again (409)."
}
EXACT_CODES = QUOTA_CODES | INTENT_CODES | CONFLICT_CODES
EXACT_CODES |= {kind: PROBLEMS[kind].happens for kind in ("wrong_state", "second_person_needed")}


def problem_response(error: Exception, request: Request, base_url: str) -> Response:
    """The response for any exception. One that is not the product's own becomes a 500 without details."""
    kind = error.kind if isinstance(error, HttpError | errors.FrontdeskError) else "internal"
    detail = getattr(error, "detail", "") if kind != "internal" else ""
    content = problem_content(
        base_url, kind, detail, instance=request.target.partition("?")[0], request_id=request.request_id
    )
    did_you_mean = dict(request.did_you_mean)
    if isinstance(error, errors.FrontdeskError) and error.faults:
        faults = [fault.serialize() for fault in error.faults]
        for fault in faults:
            if fault["code"] in UNKNOWN_NAMES and fault["field"] in did_you_mean:
                fault["did_you_mean"] = did_you_mean.pop(fault["field"])
        content["errors"] = faults
    if did_you_mean:
        content["did_you_mean"] = did_you_mean
    return Response(
        PROBLEMS[kind].status, json.dumps(content).encode(), _headers(error), b"application/problem+json"
    )


def problem_content(
    base_url: str, kind: str, detail: str, *, instance: str, request_id: str
) -> dict[str, Any]:
    problem = PROBLEMS[kind]
    return {
        "type": f"{base_url}/problems#{kind}",
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.happens,
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

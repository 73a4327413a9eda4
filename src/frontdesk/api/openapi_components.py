"""The shared parts of the OpenAPI document: headers and the ways to authenticate."""

from collections.abc import Iterable
from typing import Any

from frontdesk.access.model import Scope
from frontdesk.api.bodies import explained
from frontdesk.eligibility.model import WARNINGS, Outcome
from frontdesk.invitations.model import NotInvitedReason

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_WARNING = "|".join(WARNINGS)

SCOPES = {
    Scope.CUSTOMER: "The whole of /v2.",
    Scope.PLANS_READ: "Read plans.",
    Scope.PLANS_WRITE: "Change plans.",
    Scope.ELIGIBILITY_WRITE: "Create and update eligible members, one by one and by file.",
    Scope.OPERATOR: "Operate the service; customers don't get it.",
}


def _sent(description: str, schema: Schema, example: object, *, always: bool = True) -> Schema:
    """A header of answers. `always`: each answer that lists the header carries it."""
    return {"description": description, "required": always, "schema": schema, "example": example}


def _constant(description: str, value: str) -> Schema:
    return _sent(description, _TEXT | {"const": value}, value)


def _pattern(pattern: str) -> Schema:
    return _TEXT | {"pattern": pattern}


HEADERS: dict[str, Schema] = {
    "X-Request-Id": _sent(
        "Identifies the request in the log: the caller's `X-Request-Id` if it has 1 to 64 letters, digits, `.`, `_` or "
        "`-`, else one that the service makes.",
        _pattern("^[A-Za-z0-9._-]{1,64}$"),
        "5f0c1a2b00000001",
    ),
    "X-Content-Type-Options": _constant("Browsers must not guess another content type.", "nosniff"),
    "Content-Security-Policy": _sent(
        "The page loads from this service only, and sends requests to it only.",
        _TEXT,
        "default-src 'none'; script-src 'self'",
    ),
    "Cache-Control": _sent("Whether, and how long, the answer may be kept.", _TEXT, "no-store"),
    "Pragma": _constant("`Cache-Control` for HTTP/1.0 (RFC 6749).", "no-cache"),
    "Connection": _constant("The server does not read the rest of the body.", "close"),
    "Location": _sent(
        "Address of the new file.", _TEXT, "https://api.example.com/v2/plans/1/eligibility-files/7"
    ),
    "Content-Disposition": _sent("Name to save the file by.", _TEXT, 'attachment; filename="report-7.jsonl"'),
    "ETag": _sent(
        "Version of what was read, for `If-None-Match`; of one plan for `If-Match` too.",
        _pattern('^"[^"]+"$'),
        '"v3.8c6c1d7f0a3b2e19"',
    ),
    "Allow": _sent("Methods of this path.", _TEXT, "GET, HEAD, PATCH"),
    "WWW-Authenticate": _sent(
        "How to authenticate, and what was wrong.", _TEXT, 'Bearer error="invalid_token"'
    ),
    "Retry-After": _sent("Seconds to wait before the next request.", {"type": "integer", "minimum": 1}, 1),
    "RateLimit-Limit": _sent(
        "Requests per minute of this client. The three RateLimit headers are sent only to clients with a limit.",
        _COUNT,
        600,
        always=False,
    ),
    "RateLimit-Remaining": _sent("Requests left in this minute.", _COUNT, 599, always=False),
    "RateLimit-Reset": _sent("Seconds until the minute ends.", _COUNT, 42, always=False),
    "Ignored-Fields": _sent(
        "Unknown fields of the body, which were ignored: percent-encoded, 40 characters of each, 20 names at most; `+3` at "
        "the end stands for 3 more.",
        _TEXT,
        "favourite_color,shoe%20size",
        always=False,
    ),
    "Eligibility-Outcome": _sent(
        "What the request did. `moved`: the record was under another plan of the account and is under this one now.",
        _TEXT | {"enum": [str(outcome) for outcome in Outcome]},
        "updated",
    ),
    "Eligibility-Changed": _sent(
        "The fields that an update changed; absent if it changed none.",
        _pattern("^[a-z_]+(?:,[a-z_]+)*$"),
        "last_name,zipcode",
        always=False,
    ),
    "Eligibility-Warnings": _sent(
        f"Likely mistakes that are no faults; the record is written.\n\n{explained(WARNINGS)}",
        _pattern(f"^(?:{_WARNING})(?:,(?:{_WARNING}))*$"),
        "dob_not_midnight,state_not_recognised",
        always=False,
    ),
    "Invitation": _sent(
        "Whether the member is invited by e-mail: at once, in the account's batches (`queued`), or not, with the reason.",
        _pattern(f"^(?:immediate|queued|none; reason=(?:{'|'.join(NotInvitedReason)}))$"),
        "none; reason=not_new",
    ),
}

ON_EVERY_ANSWER = ("X-Request-Id", "X-Content-Type-Options")
OF_LIMITED_CLIENTS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def header_refs(names: Iterable[str]) -> Schema:
    """References to the named headers and to those of every answer."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*ON_EVERY_ANSWER, *names)}


def security_schemes(base_url: str) -> Schema:
    """The ways to authenticate, by name."""
    scopes = {str(scope): text for scope, text in SCOPES.items()}
    return {
        "token": {"type": "http", "scheme": "bearer", "description": "An access token."},
        "client": {
            "type": "oauth2",
            "description": "A token that the client gets for itself.",
            "flows": {"clientCredentials": {"tokenUrl": f"{base_url}/oauth/token", "scopes": scopes}},
        },
        "basic": {"type": "http", "scheme": "basic", "description": "`client_id` and `client_secret`."},
    }

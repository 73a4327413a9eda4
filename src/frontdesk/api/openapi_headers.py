"""Every header that an answer of the service can carry, as OpenAPI describes headers; who sends which is not known here."""

from collections.abc import Iterable
from typing import Any

from frontdesk.eligibility.model import WARNINGS, Outcome
from frontdesk.invitations.model import NotInvitedReason

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TAG: Schema = {"type": "string", "pattern": '^"[^"]+"$'}
_NAMES: Schema = {"type": "string", "pattern": "^[a-z_]+(?:,[a-z_]+)*$"}


def _header(description: str, schema: Schema, example: object, *, always: bool = True) -> Schema:
    """`always`: wherever an answer is said to carry it, it does."""
    return {"description": description, "required": always, "schema": schema, "example": example}


def _choice(words: Iterable[str]) -> str:
    return "|".join(words)


HEADERS: dict[str, Schema] = {
    "X-Request-Id": _header(
        "The request's own id, by which it is found in the log: the caller's `X-Request-Id` if it has 1 to 64 letters, "
        "digits, `.`, `_` or `-`, else one made here.",
        {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "5f0c1a2b00000001",
    ),
    "X-Content-Type-Options": _header("Browsers take the content type as said.", {"const": "nosniff"}, "nosniff"),
    "Content-Security-Policy": _header(
        "The page loads from, and talks to, this service only.", _TEXT, "default-src 'none'; script-src 'self'"
    ),
    "Cache-Control": _header("Whether, and how long, the answer may be kept.", _TEXT, "no-store"),
    "Pragma": _header("`Cache-Control` for readers of old (RFC 6749).", {"const": "no-cache"}, "no-cache"),
    "Connection": _header("What is left of the body is not read.", {"const": "close"}, "close"),
    "Location": _header("The address of what was made.", _TEXT, "https://api.example.com/v2/plans/1/eligibility-files/7"),
    "Content-Disposition": _header(
        "A name for the file, if it is kept as one.", _TEXT, 'attachment; filename="report-7.jsonl"'
    ),
    "ETag": _header("What was read, for `If-None-Match`; of one plan for `If-Match` too.", _TAG, '"v3.8c6c1d7f0a3b2e19"'),
    "Allow": _header("The methods of this path.", _TEXT, "GET, HEAD, PATCH"),
    "WWW-Authenticate": _header("How to authenticate, and what was wrong.", _TEXT, 'Bearer error="invalid_token"'),
    "Retry-After": _header("Seconds after which the request is welcome again.", {"type": "integer", "minimum": 1}, 1),
    "RateLimit-Limit": _header(
        "Requests per minute of this client. The three RateLimit headers are sent only where a limit is set.",
        _COUNT,
        600,
        always=False,
    ),
    "RateLimit-Remaining": _header("What is left of them in this minute.", _COUNT, 599, always=False),
    "RateLimit-Reset": _header("Seconds until the minute is over.", _COUNT, 42, always=False),
    "Ignored-Fields": _header(
        "Fields of the body that are not known and were ignored: percent-encoded, shortened to 40 characters, at most 20; "
        "`+3` at the end stands for 3 more.",
        _TEXT,
        "favourite_color,shoe%20size",
        always=False,
    ),
    "Eligibility-Outcome": _header(
        "What became of the record. `moved`: it was under another plan of the account and is under this one now.",
        {"type": "string", "enum": [outcome.value for outcome in Outcome]},
        "updated",
    ),
    "Eligibility-Changed": _header(
        "The fields that an update changed; absent when it changed none, and for a new record.",
        _NAMES,
        "last_name,zipcode",
        always=False,
    ),
    "Eligibility-Warnings": _header(
        "Likely mistakes that are no faults; the record was taken.\n\n"
        + "\n".join(f"- `{code}`: {text}" for code, text in WARNINGS.items()),
        {"type": "string", "pattern": f"^(?:{_choice(WARNINGS)})(?:,(?:{_choice(WARNINGS)}))*$"},
        "dob_not_midnight,state_not_recognised",
        always=False,
    ),
    "Invitation": _header(
        "Whether the member is invited by e-mail: at once, in the account's batches (`queued`), or not, and why not.",
        {"type": "string", "pattern": f"^(?:immediate|queued|none; reason=(?:{_choice(NotInvitedReason)}))$"},
        "none; reason=not_new",
    ),
}  # fmt: skip

# Described where they are sent: with the methods of each path, with the service's own address.
IN_PLACE = ("Allow", "Location")
ON_EVERY_ANSWER = ("X-Request-Id", "X-Content-Type-Options")
OF_LIMITED_CLIENTS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def header_refs(names: Iterable[str]) -> Schema:
    """References to the named headers and those of every answer."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*ON_EVERY_ANSWER, *names)}

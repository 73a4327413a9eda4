"""The shared parts of the OpenAPI document: headers and the ways to authenticate."""

from collections.abc import Iterable
from typing import Any

from frontdesk.access.model import Scope
from frontdesk.api.notation import explained
from frontdesk.eligibility.model import SIMILAR_MEMBER, WARNINGS, Outcome
from frontdesk.invitations.model import NotInvitedReason

Schema = dict[str, Any]

_WARNING = "|".join(WARNINGS).replace(SIMILAR_MEMBER, f"{SIMILAR_MEMBER};member=[0-9]+")


def _sent(description: str, example: str | int, *, always: bool = True, **keywords: object) -> Schema:
    """A header of answers. `always`: each answer that lists the header carries it. `keywords` narrow its schema."""
    type_ = {"type": "string"} if isinstance(example, str) else {"type": "integer", "minimum": 0}
    return {"description": description, "required": always, "schema": type_ | keywords, "example": example}


HEADERS: dict[str, Schema] = {
    "X-Request-Id": _sent(
        "Identifies the request in the log: the caller's `X-Request-Id` if it has 1 to 64 letters, digits, `.`, `_` or "
        "`-`, else one that the service makes.",
        "5f0c1a2b00000001",
        pattern="^[A-Za-z0-9._-]{1,64}$",
    ),
    "X-Content-Type-Options": _sent(
        "Browsers must not guess another content type.", "nosniff", const="nosniff"
    ),
    "Referrer-Policy": _sent(
        "No page that is opened from here learns this address.", "no-referrer", const="no-referrer"
    ),
    "Content-Security-Policy": _sent(
        "The page loads from this service only, and sends requests to it only.",
        "default-src 'none'; script-src 'self'",
    ),
    "Cache-Control": _sent("Whether, and how long, the answer may be kept.", "no-store"),
    "Pragma": _sent("`Cache-Control` for HTTP/1.0 (RFC 6749).", "no-cache", const="no-cache"),
    "Connection": _sent("The server does not read the rest of the body.", "close", const="close"),
    "Location": _sent("Address of the new file.", "https://api.example.com/v2/plans/1/eligibility-files/7"),
    "Vary": _sent("The answer depends on this header of the request.", "accept-encoding"),
    "Content-Encoding": _sent("`gzip` if the request accepts it.", "gzip", always=False, const="gzip"),
    "Link": _sent(
        "Address of the next page, if there is one (RFC 8288).",
        '<https://api.example.com/v2/plans/1/eligibility-files/7/report?page%5Bsize%5D=1000&page%5Bafter%5D=0.1000>; rel="next"',
        always=False,
    ),
    "Content-Disposition": _sent("Name to save the file by.", 'attachment; filename="report-7.jsonl"'),
    "ETag": _sent(
        "Version of what was read, for `If-None-Match`; of one plan for `If-Match` too.",
        '"v3.8c6c1d7f0a3b2e19"',
        pattern='^"[^"]+"$',
    ),
    "Allow": _sent("Methods of this path.", "GET, HEAD, PATCH"),
    "WWW-Authenticate": _sent("How to authenticate, and what was wrong.", 'Bearer error="invalid_token"'),
    "Retry-After": _sent("Seconds to wait before the next request.", 1, minimum=1),
    "RateLimit-Limit": _sent(
        "Requests per minute of this client. The three RateLimit headers come with each answer to a client with a limit of its "
        "own, to others when less than a tenth is left.",
        600,
        always=False,
    ),
    "RateLimit-Remaining": _sent("Requests left in this minute.", 599, always=False),
    "RateLimit-Reset": _sent("Seconds until the minute ends.", 42, always=False),
    "Ignored-Fields": _sent(
        "Unknown fields of the body, which were ignored: percent-encoded, 40 characters of each, 20 names at most; `+3` at "
        "the end stands for 3 more. A refusal names them too.",
        "favourite_color,shoe%20size",
        always=False,
    ),
    "Ignored-Parameters": _sent(
        "Unknown parameters of the query, which were ignored, written as `Ignored-Fields` are.",
        "externalid",
        always=False,
    ),
    "Did-You-Mean": _sent(
        "Unknown fields and parameters, each with the known name that is near to it.",
        "expiration_date=expiry_date,externalid=external_id",
        always=False,
        pattern=r"^[^=,]+=[a-z_\[\]]+(?:,[^=,]+=[a-z_\[\]]+)*$",
    ),
    "Eligibility-Outcome": _sent(
        "What the request did. `moved`: the record was under another plan of the account and is under this one now.",
        "updated",
        enum=[*map(str, Outcome)],
    ),
    "Eligibility-Changed": _sent(
        "The fields that an update changed; absent if it changed none.",
        "last_name,zipcode",
        always=False,
        pattern="^[a-z_]+(?:,[a-z_]+)*$",
    ),
    "Eligibility-Left-Plan": _sent(
        "`external_id`, percent-encoded, of the plan that a moved record was under.",
        "gold-2026",
        always=False,
    ),
    "Eligibility-Warnings": _sent(
        f"Likely mistakes that are no faults; the record is written.\n\n{explained(WARNINGS)}",
        "dob_not_midnight,state_not_recognised",
        always=False,
        pattern=f"^(?:{_WARNING})(?:,(?:{_WARNING}))*$",
    ),
    "Invitation": _sent(
        "Whether the member is invited by e-mail: at once, in the account's batches (`queued`), or not, with the reason.",
        "none; reason=not_new",
        pattern=f"^(?:immediate|queued|none; reason=(?:{'|'.join(NotInvitedReason)}))$",
    ),
}

ON_EVERY_ANSWER = ("X-Request-Id", "X-Content-Type-Options")
OF_UNKNOWN_PARAMETERS = ("Ignored-Parameters", "Did-You-Mean")
OF_LIMITED_CLIENTS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def header_refs(names: Iterable[str]) -> Schema:
    """References to the named headers and to those of every answer."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*ON_EVERY_ANSWER, *names)}


def security_schemes(base_url: str) -> Schema:
    """The ways to authenticate, by name."""
    scopes = {
        Scope.CUSTOMER.value: "The whole of /v2.",
        Scope.PLANS_READ.value: "Read plans.",
        Scope.PLANS_WRITE.value: "Change plans.",
        Scope.ELIGIBILITY_WRITE.value: "Create and update eligible members, one by one and by file.",
        Scope.OPERATOR.value: "Operate the service; customers don't get it.",
    }
    return {
        "token": {"type": "http", "scheme": "bearer", "description": "An access token."},
        "client": {
            "type": "oauth2",
            "description": "A token that the client gets for itself.",
            "flows": {"clientCredentials": {"tokenUrl": f"{base_url}/oauth/token", "scopes": scopes}},
        },
        "basic": {"type": "http", "scheme": "basic", "description": "`client_id` and `client_secret`."},
    }

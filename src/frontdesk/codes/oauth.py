"""Errors of /oauth (RFC 6749, section 5.2), and `rate_limited`."""

from functools import partial

from frontdesk.codes.model import Code, Kind, Where

_oauth = partial(Code.declared, Where.OAUTH)

INVALID_REQUEST = _oauth(
    "invalid_request",
    "A parameter is missing, repeated or unreadable, or the client authenticates in two ways.",
    kind=Kind.MALFORMED,
)
INVALID_SCOPE = _oauth(
    "invalid_scope", "The client does not have every scope that it asks for.", kind=Kind.MALFORMED
)
UNSUPPORTED_GRANT_TYPE = _oauth(
    "unsupported_grant_type", "Only client_credentials is supported.", kind=Kind.MALFORMED
)
INVALID_CLIENT = _oauth(
    "invalid_client",
    "The client is unknown, its secret is wrong, it did not authenticate, or its account is "
    "suspended.",
    kind=Kind.UNAUTHORIZED,
)
RATE_LIMITED = _oauth(
    "rate_limited",
    "Too many failed attempts by this client or from this address, or too many requests in "
    "this minute.",
    kind=Kind.RATE_LIMITED,
)

"""Accounts, their API clients, their secrets, and what a client's token allows.

Secrets and tokens are 256 random bits each; only the SHA-256 is stored. A slow password hash would
add no security and cost 220 ms a request (docs/decisions/0004).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Scope(StrEnum):
    """A right of a token. `customer` allows the whole /v2 but reading members, events and webhooks,
    which a client is given by name, as it is the reset of a sandbox; `operator` is for clients
    without an account.
    """

    CUSTOMER = "customer"
    PLANS_READ = "plans:read"
    PLANS_WRITE = "plans:write"
    ELIGIBILITY_READ = "eligibility:read"
    ELIGIBILITY_WRITE = "eligibility:write"
    EVENTS_READ = "events:read"
    WEBHOOKS_MANAGE = "webhooks:manage"
    SANDBOX_RESET = "sandbox:reset"
    OPERATOR = "operator"


class AccountState(StrEnum):
    """Whether the account works. While `suspended`, its tokens are refused, its files and mails
    wait; `closed` is for good.
    """

    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


IMMEDIATE_HOURLY_LIMIT = 1000  # unless an operator sets another
# states in which a token passes; an operator's has no account
WORKING = (None, AccountState.ACTIVE)
_CUSTOMER = {Scope.PLANS_READ, Scope.PLANS_WRITE, Scope.ELIGIBILITY_WRITE}


def parse_scopes(text: str) -> frozenset[Scope] | None:
    """The scopes of a space-separated list; None when a scope is unknown or the list is empty."""
    try:
        return frozenset(Scope(word) for word in text.split(" ") if word) or None
    except ValueError:
        return None


def granted(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """The scopes with the scopes that they include: `customer` includes the three finer ones."""
    given = frozenset(scopes)
    return given | _CUSTOMER if Scope.CUSTOMER in given else given


def scope_text(scopes: Iterable[Scope]) -> str:
    return " ".join(sorted(scopes))


@dataclass(frozen=True, slots=True)
class Account:
    """A customer: the owner of plans and members.

    The days of its members begin and end in `time_zone` (`clock.account_day`). With
    `reopens_absent`, a record without an expiry_date opens the access of a member again that was
    ended only because a full file omitted it.
    """

    id: int
    name: str
    created_at: datetime
    state: AccountState
    immediate_hourly_limit: int
    time_zone: str | None
    reopens_absent: bool


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """One secret of an API client; its text is shown once and never stored.

    `last_used_on` is the UTC day (YYYY-MM-DD) on which it last got a token.
    """

    id: int
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_on: str | None


@dataclass(frozen=True, slots=True)
class NewClient:
    """A new API client: an account's, or an operator's without an account. Its first secret ends at
    `expires_at`.
    """

    account_id: int | None
    name: str
    scopes: Collection[Scope]
    requests_per_minute: int | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ApiClient:
    """A system that calls the API: an account's, or an operator's without an account. `client_id`
    is public; `requests_per_minute` is its own limit.
    """

    id: int
    account_id: int | None
    client_id: str
    name: str
    scopes: frozenset[Scope]
    requests_per_minute: int | None
    created_at: datetime
    revoked_at: datetime | None


class MadeSecret(NamedTuple):
    """A client with a new secret, whose text can't be read again."""

    client: ApiClient
    secret: str


@dataclass(frozen=True, slots=True)
class Caller:
    """The account, the client and the rights behind a token. `client` is the client's database id.
    An operator's client has no account.
    """

    account_id: int | None
    client_id: str
    client: int
    requests_per_minute: int | None
    scopes: frozenset[Scope]
    expires_at: datetime
    account_state: AccountState | None
    time_zone: str | None


class RequestAllowance(NamedTuple):
    """Requests `remaining` of this minute's `limit`, as seen by this process; the minute ends in
    `reset_seconds`.
    """

    limit: int
    remaining: int
    reset_seconds: int

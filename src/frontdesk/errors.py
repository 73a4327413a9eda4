"""Everything that can go wrong, in the product's own terms; it knows nothing of HTTP or SQL.

A door turns each kind into its own language (the HTTP door: `web/problems.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One field at fault. `message` states the rule and never repeats the value (it may be health information)."""

    field: str
    code: str
    message: str


class FrontdeskError(Exception):
    """The root of the product's own errors; `detail` is one sentence that is safe to show the caller."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self.detail = detail


class Malformed(FrontdeskError):
    """The input could not be read at all: not JSON, duplicate keys, bad framing."""


class Invalid(FrontdeskError):
    """The input was read and some fields break a rule; all of them are named at once."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("Some fields are not valid.")
        self.faults = tuple(faults)


class NotFound(FrontdeskError):
    """No such thing, or another account's: the two are told alike."""


class Conflict(FrontdeskError):
    """The caller's copy is stale (optimistic concurrency)."""


class Unauthorized(FrontdeskError):
    """Nobody we know: the token is missing, unknown, expired or revoked."""


class Forbidden(FrontdeskError):
    """Known, but without the scope that this needs."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"The token lacks the scope {scope}.")
        self.scope = scope


class RateLimited(FrontdeskError):
    """Too many requests. `retry_after_seconds` says when the next one is welcome."""

    def __init__(self, detail: str, *, retry_after_seconds: int) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(FrontdeskError):
    """The database can't answer now. Nothing was written unless `outcome_unknown`; sending it again is safe.

    `stale_connection`: only this connection was dead, so trying at once on another one may work. `busy`: the database
    answers, but others hold what was wanted, so what is next to it may be free.
    """

    def __init__(
        self,
        detail: str,
        *,
        outcome_unknown: bool = False,
        stale_connection: bool = False,
        busy: bool = False,
    ) -> None:
        super().__init__(detail)
        self.busy = busy
        self.outcome_unknown = outcome_unknown
        self.stale_connection = stale_connection

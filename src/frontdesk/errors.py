"""Everything that can go wrong, in the product's own terms.

Each error carries two stable words: `kind`, an entry of /problems (`web/problems.py` turns it into an HTTP status), and
`code` for the exact cause. Code decides by these two, never by a sentence.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from frontdesk.text import SHOWN_NAMES, shown_name


class Fault(NamedTuple):
    """One field that breaks a rule. `message` states the rule and never repeats the value (it may be health information)."""

    field: str
    code: str
    message: str

    def serialize(self) -> dict[str, str]:
        """The fault as every answer shows it (docs/interface.md, Errors)."""
        return self._asdict()


def unknown_faults(names: Iterable[str], *, what: str = "field") -> list[Fault]:
    """A fault `unknown_field` (or another `what`) for each of the first 20 names that a caller chose."""
    shown = [shown_name(name) for name, _ in zip(names, range(SHOWN_NAMES), strict=False)]
    return [Fault(name, f"unknown_{what}", f"there is no such {what}") for name in shown]


class FrontdeskError(Exception):
    """The root of the product's own errors. `detail` is a sentence that the caller may see; `code` defaults to the kind.
    `faults` say more where there are fields, or a code that the kind does not tell."""

    kind: ClassVar[str] = "internal"
    code = ""
    faults: tuple[Fault, ...] = ()

    def __init_subclass__(cls, *, kind: str = "") -> None:
        cls.kind = kind or cls.kind

    def __init__(self, detail: str = "", *, code: str = "", field: str = "") -> None:
        """`field`: the field of a fault with the same code and sentence."""
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.code or self.kind
        if field:
            self.faults = (Fault(field, self.code, detail),)


class Malformed(FrontdeskError, kind="malformed"):
    """The input could not be read at all: not JSON, duplicate keys, bad framing."""


class Invalid(FrontdeskError, kind="invalid"):
    """The input was read, and some fields break a rule. `faults` names all of them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("Some fields are not valid.")
        self.faults = tuple(faults)


class NotFound(FrontdeskError, kind="not_found"):
    """The thing does not exist, or it is another account's: the two look the same. The code is `no_such_` and the noun."""

    def __init__(self, noun: str, detail: str = "", *, field: str = "") -> None:
        code = f"no_such_{noun.lower().replace(' ', '_')}"
        super().__init__(detail or f"There is no such {noun}.", code=code, field=field)


class Conflict(FrontdeskError, kind="conflict"):
    """The stored state does not allow what the caller wants, or another caller changed it at the same time."""


class PreconditionFailed(FrontdeskError, kind="precondition_failed"):
    """A condition of the request does not hold."""


class Unauthorized(FrontdeskError, kind="unauthorized"):
    """The token is missing, unknown, expired or revoked."""


class Forbidden(FrontdeskError, kind="forbidden"):
    """The token lacks the scope that this needs."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"The token lacks the scope {scope}.")
        self.scope = scope


class Suspended(FrontdeskError, kind="suspended"):
    """The account is suspended or closed."""


class RateLimited(FrontdeskError, kind="rate_limited"):
    """The caller has sent too many requests. It may send another after `retry_after_seconds`."""

    def __init__(
        self, detail: str, *, retry_after_seconds: int, fault: tuple[str, str] | None = None
    ) -> None:
        """`fault`: the field and the code of a fault with the same sentence."""
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds
        if fault is not None:
            self.faults = (Fault(*fault, detail),)


class Unavailable(FrontdeskError, kind="unavailable"):
    """The database can't answer now. Nothing was written unless `outcome_unknown`; sending the request again is safe.

    `stale_connection`: only this connection was dead, so an immediate retry on another connection may work. `busy`: the database
    answers, but another transaction holds the rows, so neighbouring rows may be free.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str = "",
        outcome_unknown: bool = False,
        stale_connection: bool = False,
        busy: bool = False,
    ) -> None:
        super().__init__(detail, code=code)
        self.busy = busy
        self.outcome_unknown = outcome_unknown
        self.stale_connection = stale_connection

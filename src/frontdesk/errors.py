"""Everything that can go wrong, in the product's own terms.

Each error carries two stable words: its `kind`, which decides the answer's status, and `code` for
the exact cause (frontdesk.codes). Code decides by these two, never by a sentence.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple

from frontdesk import codes
from frontdesk.codes import Code, Kind, Remedy
from frontdesk.codes.operators import Noun
from frontdesk.text import SHOWN_NAMES, shown_name


class Fault(NamedTuple):
    """One field that breaks a rule. `message` states the rule and never repeats the value (it may
    be health information).
    """

    field: str
    code: Code
    message: str

    def serialize(self) -> dict[str, str]:
        """The fault as every answer shows it (docs/interface.md, Errors)."""
        return self._asdict()


def fault_of(code: Code) -> Fault:
    """The fault of a code whose entry says all: its field and its sentence."""
    return Fault(code.field, code, code.sentence)


def unknown_faults(
    names: Iterable[str], *, what: Literal["field", "parameter"] = "field"
) -> list[Fault]:
    """A fault for each of the first 20 names that a caller chose."""
    code = codes.faults.UNKNOWN_FIELD if what == "field" else codes.faults.UNKNOWN_PARAMETER
    shown = [shown_name(name) for name, _ in zip(names, range(SHOWN_NAMES), strict=False)]
    return [Fault(name, code, f"there is no such {what}") for name in shown]


class FrontdeskError(Exception):
    """The root of the product's own errors. `detail` is a sentence that the caller may see; `code`
    defaults to that of the class, else to the kind.
    `faults` say more where there are fields, or a code that the kind does not tell.
    """

    kind: ClassVar[Kind] = Kind.INTERNAL
    own_code: ClassVar[Code | None] = None
    faults: tuple[Fault, ...] = ()

    def __init_subclass__(cls, *, kind: Kind | None = None, code: Code | None = None) -> None:
        cls.kind = kind or cls.kind
        cls.own_code = code or cls.own_code

    def __init__(
        self,
        detail: str = "",
        *,
        code: Code | StrEnum | None = None,
        field: str = "",
        remedy: Remedy | None = None,
        ids: Mapping[str, int] | None = None,
    ) -> None:
        """`field`: the field of a fault with the same code and sentence. `remedy`: what to do about
        it, if not what the code says; `ids` are those of the things that it takes.
        """
        super().__init__(detail)
        self.detail = detail
        self.code: Code | StrEnum = code or self.own_code or self.kind
        self.remedy = remedy or (self.code.remedy if isinstance(self.code, Code) else None)
        self.ids = ids or {}
        if field:
            if not isinstance(self.code, Code):
                raise TypeError("a fault needs a code of the table")
            self.faults = (Fault(field, self.code, detail),)


class Malformed(FrontdeskError, kind=Kind.MALFORMED):
    """The input could not be read at all: not JSON, duplicate keys, bad framing."""


class Invalid(FrontdeskError, kind=Kind.INVALID):
    """The input was read, and some fields break a rule. `faults` names all of them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("Some fields are not valid.")
        self.faults = tuple(faults)


class NotFound(FrontdeskError, kind=Kind.NOT_FOUND):
    """The thing does not exist, or it is another account's: the two look the same. The code is
    `no_such_` and the noun.
    """

    def __init__(self, noun: Noun, detail: str = "", *, field: str = "") -> None:
        code = codes.operators.NO_SUCH[noun]
        super().__init__(detail or f"There is no such {noun}.", code=code, field=field)


class Conflict(FrontdeskError, kind=Kind.CONFLICT):
    """The stored state does not allow what the caller wants, or another caller changed it at the
    same time.
    """


class PreconditionFailed(FrontdeskError, kind=Kind.PRECONDITION_FAILED):
    """A condition of the request does not hold."""


class Unauthorized(FrontdeskError, kind=Kind.UNAUTHORIZED):
    """The token is missing, unknown, expired or revoked."""


class Forbidden(FrontdeskError, kind=Kind.FORBIDDEN):
    """The token lacks the scope that this needs."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"The token lacks the scope {scope}.")
        self.scope = scope


class Suspended(FrontdeskError, kind=Kind.SUSPENDED):
    """The account is suspended or closed."""


class RateLimited(FrontdeskError, kind=Kind.RATE_LIMITED):
    """The caller has sent too many requests. It may send another after `retry_after_seconds`."""

    def __init__(
        self, detail: str, *, retry_after_seconds: int, fault: tuple[str, Code] | None = None
    ) -> None:
        """`fault`: the field and the code of a fault with the same sentence."""
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds
        if fault is not None:
            self.faults = (Fault(*fault, detail),)


class Unavailable(FrontdeskError, kind=Kind.UNAVAILABLE):
    """The database can't answer now. Nothing was written unless `outcome_unknown`; sending the
    request again is safe.

    `stale_connection`: only this connection was dead, so an immediate retry on another connection
    may work. `busy`: the database answers, but another transaction holds the rows, so neighbouring
    rows may be free.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: StrEnum | None = None,
        outcome_unknown: bool = False,
        stale_connection: bool = False,
        busy: bool = False,
    ) -> None:
        super().__init__(detail, code=code)
        self.busy = busy
        self.outcome_unknown = outcome_unknown
        self.stale_connection = stale_connection

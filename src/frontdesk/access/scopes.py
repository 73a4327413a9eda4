"""What a token may do. `customer` stands for the whole /v2."""

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    CUSTOMER = "customer"
    PLANS_READ = "plans:read"
    PLANS_WRITE = "plans:write"
    ELIGIBILITY_WRITE = "eligibility:write"
    OPERATOR = "operator"


_CUSTOMER = {Scope.PLANS_READ, Scope.PLANS_WRITE, Scope.ELIGIBILITY_WRITE}


def parse_scopes(text: str) -> frozenset[Scope] | None:
    """The scopes of a space-separated list; None when one of them is unknown or there is none."""
    try:
        return frozenset(Scope(word) for word in text.split(" ") if word) or None
    except ValueError:
        return None


def granted(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """The scopes with what they stand for: `customer` allows the three finer ones."""
    given = frozenset(scopes)
    return given | _CUSTOMER if Scope.CUSTOMER in given else given


def scope_text(scopes: Iterable[Scope]) -> str:
    return " ".join(sorted(scopes))

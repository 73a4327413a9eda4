"""The covered person: what a page shows of a member before anybody has opened the record. It holds
no name, no birth date and no whole address.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from frontdesk.clock import AccountDay
from frontdesk.eligibility.access_days import has_access
from frontdesk.eligibility.model import Outcome

ELLIPSIS = "…"


class MemberChange(NamedTuple):
    """An entry of a member's history: its time, the client or user, the file if the change came with
    a file, what it did and the names of the fields that it changed. `place` is the row's number in
    the file, None if the report has none.
    """

    at: datetime
    client: str
    file_id: int | None = None
    outcome: Outcome | None = None
    fields: tuple[str, ...] = ()
    place: int | None = None


class CoveredPerson(NamedTuple):
    """A member without names. `birth_year` is None and `external_id` "" of an erased member.

    `first_day` and `last_day` are those of its record (`YYYY-MM-DD`); a `last_day` of None means
    that the access has no end.
    """

    id: int
    account_id: int
    plan_id: int
    external_id: str
    initials: str
    birth_year: int | None
    masked_email: str | None
    is_eligible: bool
    first_day: str
    last_day: str | None
    last_change: MemberChange | None = None


def cover(
    values: Mapping[str, Any], day: AccountDay, last_change: MemberChange | None = None
) -> CoveredPerson:
    """The covered person of a stored member, eligible or not on this day."""
    is_there = values["uniqueness_scope"] >= 0 and values["merged_into"] is None
    return CoveredPerson(
        id=values["id"],
        account_id=values["account_id"],
        plan_id=values["plan_id"],
        external_id=values["external_id"],
        initials=initials_of(values["first_name"], values["last_name"]),
        birth_year=_birth_year(values["dob"]),
        masked_email=mask_email(values["email"]),
        is_eligible=is_there and has_access(values, day.earliest, day.latest),
        first_day=values["effective_date"],
        last_day=values["expiry_date"],
        last_change=last_change,
    )


def initials_of(*names: str) -> str:
    """The first letter of each name; "" of a name without one.

    >>> initials_of("robin", "O'Sample")
    'R. O.'
    """
    letters = (next(filter(str.isalnum, name), "") for name in names)
    return " ".join(f"{letter.upper()}." for letter in letters if letter)


def mask_email(email: str | None) -> str | None:
    """The first letters of mailbox and domain, and the last part of the domain: a domain can be a
    family's name.

    >>> mask_email("robin.sample@mail.example.com")
    'r…@m….com'
    """
    if email is None:
        return None
    mailbox, _, domain = email.rpartition("@")
    host, _, end = domain.rpartition(".")
    if not host:
        return f"{mailbox[:1]}{ELLIPSIS}@{ELLIPSIS}"
    return f"{mailbox[:1]}{ELLIPSIS}@{host[:1]}{ELLIPSIS}.{end}"


def _birth_year(dob: str) -> int | None:
    year = int(dob[:4]) if dob[:4].isdigit() else 0
    return year if year > 1 else None  # an erased member is born on 0001-01-01

"""What the row of a file says besides the values of fields, and what that means beside the stored members. A POST has none.

An 834 names a person by the way that the account's mapping says. The person check refuses a row whose name, birth date, role or
family show that the stored member with its identifier is somebody else (docs/834.md, Who a row is).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from frontdesk.eligibility.model import ADDRESS, PersonSaid, StoredMember, Submission
from frontdesk.eligibility.unique_keys import KeyHolders
from frontdesk.errors import Fault

IDENTITY_CONFLICT = Fault(
    "external_id",
    "identity_conflict",
    "is that of a stored member with another name, birth date, role or family. If it is the same person, correct the record with "
    "a POST. If the number was given to somebody new, free it with: frontdesk member rename. Else the mapping has to name "
    "members in another way (identify)",
)

# What senders write for a child without a name yet, folded.
_NEWBORN = re.compile(
    r"(?:baby|newborn|infant|nb)(?:boy|girl|male|female|[a-dfgm1-4])?|(?:boy|girl)[a-d1-4]?|b[bg]|(?:baby(?:boy|girl|of)|newborn).*"
)


class Agreement(NamedTuple):
    """Whether first name, last name and birth date agree; None where one side does not carry it."""

    first_name: bool | None
    last_name: bool | None
    dob: bool | None


def fold_name(name: str) -> str:
    """A name without letter case, spaces and punctuation."""
    folded = name.casefold()
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


def are_two_people(person: PersonSaid, other: PersonSaid) -> bool:
    """Whether a row and a stored member, or two rows, are clearly about two people."""
    agreement = _agreement(person, other)
    has_other_role = bool(person.role and other.role) and person.role != other.role
    has_other_family = bool(person.family and other.family) and person.family != other.family
    is_twin = bool(person.sequence and other.sequence) and person.sequence != other.sequence
    if is_twin or agreement.first_name is False:
        return True
    if agreement.dob is False and (agreement.last_name is False or has_other_role):
        return True
    if has_other_family:
        return not (agreement.first_name and agreement.dob)
    return agreement.first_name is None and agreement.dob is None and has_other_role


def person_of(values: Mapping[str, Any]) -> PersonSaid:
    """The person that a stored member is."""
    return PersonSaid(
        first_name=values["first_name"],
        last_name=values["last_name"],
        dob=values["dob"],
        role=values["subscriber_relationship"] or "",
        family=values["family_digest"] or "",
    )


def _agreement(person: PersonSaid, other: PersonSaid) -> Agreement:
    first_names = [*filter(None, map(_known_first_name, (person.first_name, person.former_first_name)))]
    last_names = [*filter(None, map(fold_name, (person.last_name, person.former_last_name)))]
    births = [*filter(None, (person.dob, person.former_dob))]
    first, last = _known_first_name(other.first_name), fold_name(other.last_name)
    return Agreement(
        any(first.startswith(name) or name.startswith(first) for name in first_names)
        if first_names and first
        else None,
        last in last_names if last_names and last else None,
        other.dob in births if births and other.dob else None,
    )


def _known_first_name(name: str) -> str:
    """The folded name; "" for an initial, and for what stands for a child without a name."""
    folded = fold_name(name)
    return "" if len(folded) < 2 or _NEWBORN.fullmatch(folded) else folded


def as_new(
    submission: Submission, scope: int, *, holders: KeyHolders, subscribers: Mapping[str, StoredMember]
) -> Submission:
    """The submission for a member that is not stored yet. `subscribers` are stored ones by family digest."""
    record, context = submission.record, submission.context
    if context is None:
        return submission
    of_new = dict(context.given_of_new or {})
    subscriber = subscribers.get(context.address_of)
    if subscriber is not None and "zipcode" not in record.given:
        values = subscriber.values
        of_new |= {name: values[name] for name in ADDRESS if values[name] is not None}
        record = replace(record, warnings=(*record.warnings, "address_of_subscriber"))
    if of_new:
        record = replace(record, given={**of_new, **record.given})
    if record is not submission.record:
        submission = submission._replace(record=record)
    return _without_taken_email(submission, holders, scope, own=None)


def as_change(submission: Submission, holders: KeyHolders, scope: int, stored: StoredMember) -> Submission:
    """The submission for the stored member."""
    record, values, context = submission.record, stored.values, submission.context
    if context is None:
        return submission
    end = values["expiry_date"]
    if context.keeps_earlier_end and end is not None and end < record.given["expiry_date"]:
        # A table lists its terminated employees every night: the first night counts.
        record = replace(record, given={**record.given, "expiry_date": end})
        submission = submission._replace(record=record)
    if context.ends_access:
        begin = record.given.get("effective_date") or values["effective_date"]
        if (record.given.get("expiry_date") or begin) < begin:
            given, warnings = {**record.given, "expiry_date": begin}, (*record.warnings, "ends_on_first_day")
            record = replace(record, given=given, warnings=warnings)
            submission = submission._replace(record=record, row_digest=None)
    return _without_taken_email(submission, holders, scope, own=stored)


def _without_taken_email(
    submission: Submission, holders: KeyHolders, scope: int, *, own: StoredMember | None
) -> Submission:
    """An address that another record carries is left out: a family shares one, and no one loses access for it (0085).

    The row keeps no digest, so that it is read again: the address may be free by then.
    """
    record = submission.record
    folded = record.given.get("email_folded")
    if folded is None or not holders.taken({"email_folded": folded}, scope, own):
        return submission
    given = {name: value for name, value in record.given.items() if name not in ("email", "email_folded")}
    record = replace(record, given=given, warnings=(*record.warnings, "email_taken"))
    return submission._replace(record=record, row_digest=None)

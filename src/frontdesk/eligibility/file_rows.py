"""What the record of a file's row means beside the stored members: rules that a POST does not have (docs/834.md)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from frontdesk.eligibility.families import Families, is_found, is_newborn_of, is_stranger, keeps_its_key
from frontdesk.eligibility.first_names import is_newborn_name
from frontdesk.eligibility.model import ADDRESS, Action, StoredMember, Submission
from frontdesk.eligibility.row_hints import FamilyMember
from frontdesk.eligibility.unique_keys import KeyHolders
from frontdesk.errors import Fault

IDENTITY_AMBIGUOUS = Fault(
    "external_id",
    "identity_ambiguous",
    "may be that of another person; send first name (NM104), date of birth (DMG02) and the subscriber's number (REF*0F)",
)


def find_person(
    submission: Submission,
    stored: StoredMember | None,
    scope: int,
    *,
    holders: KeyHolders,
    families: Families,
) -> tuple[Submission, StoredMember | None, Fault | None]:
    """The submission, the stored member that it is about, and the fault if several may be meant.

    `stored` was found by the identifier. Else the person is looked for in its family, and the report says so.
    """
    record, hints = submission.record, submission.record.hints
    family = hints and hints.family
    if not hints or not family or record.external_id is None:
        return submission, stored, None
    if stored is None and (family.open_key or family.hidden_key):
        submission, family, stored = _in_other_form(
            submission, family, scope, holders=holders, families=families
        )
        record, hints = submission.record, hints._replace(family=family)
    key = record.external_id or ""
    if stored is not None and is_found(stored, hints, account_id=submission.account_id):
        return submission, stored, None
    persons = families.persons(
        family, key, holders, submission.account_id, scope, is_category=hints.is_category
    )
    is_new = stored is None or bool(family.telling_key and is_stranger(stored, family))
    if len(persons) > 1 or (not persons and not is_new):
        return submission, None, IDENTITY_AMBIGUOUS
    if not persons and stored is None:
        return submission, None, None
    if not persons:
        renamed = _renamed(submission, family.telling_key)
        return renamed, holders.find(family.telling_key, scope), None
    [person] = persons
    if is_newborn_of(person, family) and is_newborn_name(family.first_name):
        submission = _without_name(submission)
    keeps = hints.is_category or keeps_its_key(record, family, person)
    if stored is not None or submission.action is not Action.ENROL or keeps:
        submission = _renamed(submission, None)
    record = submission.record
    record = replace(record, warnings=(*record.warnings, "identity_matched"))
    return submission._replace(record=record), person, None


def _in_other_form(
    submission: Submission, family: FamilyMember, scope: int, *, holders: KeyHolders, families: Families
) -> tuple[Submission, FamilyMember, StoredMember | None]:
    """A row whose file shows that a number is a social security number, or does not, and another file said otherwise.

    The record and the report get the identifier that hides the number.
    """
    account_id, record = submission.account_id, submission.record
    stored = holders.find(family.open_key or family.hidden_key, scope)
    if stored is not None and stored.values["account_id"] != account_id:
        stored = None
    if family.open_key:
        if stored is not None and stored.values["member_id"] == family.open_key:
            given = {**record.given, "member_id": record.external_id}
            submission = submission._replace(record=replace(record, given=given))
    elif stored is not None or families.has_other_name(family, account_id):
        hidden, telling = family.hidden_key, family.telling_key
        telling = telling and hidden + telling[len(record.external_id or "") :]
        submission = _renamed(submission, hidden)
        family = family._replace(name=family.other_name, other_name=family.name, telling_key=telling)
    return submission, family, stored


def _without_name(submission: Submission) -> Submission:
    """The submission without a first name that stands for none."""
    given = {name: value for name, value in submission.record.given.items() if name != "first_name"}
    return submission._replace(record=replace(submission.record, given=given), row_digest=None)


def _renamed(submission: Submission, key: str | None) -> Submission:
    """The submission with another identifier of the person; with None it carries none, and the stored one stays.

    The next row with the old identifier must be looked at again, so it keeps no digest.
    """
    record = submission.record
    old = record.external_id
    given, of_new = _with_key(record.given, old, key), record.given_of_new
    record = replace(record, external_id=key or old, given=given)
    if of_new:
        record = replace(record, given_of_new=_with_key(of_new, old, key))
    return submission._replace(record=record, row_digest=None)


def _with_key(given: Mapping[str, Any], old: str | None, key: str | None) -> dict[str, Any]:
    renamed = {
        name: key if value == old and name in ("external_id", "member_id") else value
        for name, value in given.items()
    }
    return {name: value for name, value in renamed.items() if value is not None or given[name] is None}


def as_new(submission: Submission, scope: int, *, holders: KeyHolders, families: Families) -> Submission:
    """The submission for a member that is not stored yet."""
    record, hints = submission.record, submission.record.hints
    if hints is None:
        return submission
    of_new = dict(record.given_of_new or {})
    if hints.subscriber_keys and "zipcode" not in record.given:
        account_id = submission.account_id
        subscriber = families.subscriber(hints.family, account_id) if hints.family else None
        found = subscriber or _subscriber(hints.subscriber_keys, holders, account_id, scope)
        of_new |= {name: found[name] for name in ADDRESS if found and found[name] is not None}
        if "zipcode" in of_new:
            record = replace(record, warnings=(*record.warnings, "address_of_subscriber"))
    if of_new:
        record = replace(record, given={**of_new, **record.given})
    if record is not submission.record:
        submission = submission._replace(record=record)
    return _without_taken_email(submission, holders, scope, own=None)


def as_change(submission: Submission, holders: KeyHolders, scope: int, stored: StoredMember) -> Submission:
    """The submission for the stored member."""
    record, values = submission.record, stored.values
    hints, end = record.hints, values["expiry_date"]
    if hints is None:
        return submission
    if hints.keeps_earlier_end and end is not None and end < record.given["expiry_date"]:
        # A table lists its terminated employees every night: the first night counts.
        record = replace(record, given={**record.given, "expiry_date": end})
        submission = submission._replace(record=record)
    if hints.ends_access:
        begin = record.given.get("effective_date") or values["effective_date"]
        if (record.given.get("expiry_date") or begin) < begin:
            given, warnings = {**record.given, "expiry_date": begin}, (*record.warnings, "ends_on_first_day")
            submission = submission._replace(
                record=replace(record, given=given, warnings=warnings), row_digest=None
            )
    return _without_taken_email(submission, holders, scope, own=stored)


def _subscriber(keys: Iterable[str], holders: KeyHolders, account_id: int, scope: int) -> dict[str, Any]:
    """The values of the stored subscriber that has one of the keys; empty if there is none."""
    for key in keys:
        stored = holders.find(key, scope)
        values: dict[str, Any] = {} if stored is None else stored.values
        if values.get("account_id") == account_id and values["subscriber_relationship"] == "Primary":
            return values
    return {}


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

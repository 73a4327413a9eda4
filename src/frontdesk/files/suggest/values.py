"""Looks at the values of a column: how well they fit a field, and the rule that would read them."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from frontdesk.eligibility.code_sets import GENDERS, HIPAA_RELATIONSHIPS, STATE_CODES
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.values import FieldContext
from frontdesk.files.rules import NAME_PARTS
from frontdesk.files.suggest.dates import DateHabit, Fit, fit_of_dates, share_of
from frontdesk.files.suggest.names import FULL_NAME, PERSON_NUMBER
from frontdesk.files.suggest.words import BOOLEAN_OF, GENDER_NUMBERS, GENDER_OF, RELATIONSHIP_OF
from frontdesk.text import Rejected, RejectedParts


def _fit_words(
    values: Sequence[str], known: dict[str, Any], own: Sequence[str], *, blanks: Any = None
) -> Fit:
    words = {value.casefold() for value in values}
    rule = {word: known[word] for word in sorted(words) if word in known and word not in own}
    good = sum(value.casefold() in known or value.casefold() in own for value in values)
    if blanks is not None:
        rule[""] = blanks
    return Fit(share_of(good, values), {"values": rule} if rule else {})


def _fit_gender(values: Sequence[str], *, has_blanks: bool) -> Fit:
    """Numbers are read by ISO 5218, which not every sender means."""
    blanks = "unknown" if has_blanks else None
    if values and GENDER_NUMBERS.keys() >= set(values):
        return _fit_words(values, GENDER_NUMBERS, (), blanks=blanks)._replace(is_sure=False)
    return _fit_words(values, GENDER_OF, GENDERS, blanks=blanks)


def _fit_zip(values: Sequence[str]) -> Fit:
    short = any(re.fullmatch("[0-9]{3,4}(?:-[0-9]{4})?", value) for value in values)
    good = sum(bool(re.fullmatch("[0-9]{3,5}(?:-?[0-9]{4})?", value)) for value in values)
    return Fit(share_of(good, values), {"pad": 5} if short else {})


def _fit_phone(values: Sequence[str]) -> Fit:
    cut = NAME_PARTS["phone"]
    has_extension = any(cut(value) != value for value in values)
    good = _accepted("phone", [cut(value) for value in values])
    return Fit(share_of(good, values), {"part": "phone"} if has_extension else {})


def _fit_full_name(values: Sequence[str]) -> Fit:
    return Fit(share_of(sum(len(value.split()) > 1 for value in values), values), {})


def _accepted(field: str, values: Sequence[str]) -> int:
    """How many of the values the field itself takes."""
    kind, context, good = FIELDS[field].kind, FieldContext("9999-12-31"), 0
    for value in values:
        try:
            kind.read(value if kind.from_text is None else kind.from_text(value), context)
        except (Rejected, RejectedParts):
            continue
        good += 1
    return good


def _fit_relationship(values: Sequence[str]) -> Fit:
    own = [code.casefold() for code in HIPAA_RELATIONSHIPS]
    return _fit_words(values, RELATIONSHIP_OF, own)


def fit_of(field: str, values: Sequence[str], habit: DateHabit, *, has_blanks: bool) -> Fit:
    """How well the values of a column, without the blank ones, fit the field."""
    match field:
        case "dob" | "effective_date" | "expiry_date":
            return fit_of_dates(values, field, habit)
        case "gender":
            return _fit_gender(values, has_blanks=has_blanks)
        case "medical_eligibility" | "medical_enrollment":
            return _fit_words(values, BOOLEAN_OF, ("true", "false"))
        case "relationship":
            return _fit_relationship(values)
        case "state":
            return Fit(share_of(sum(value.casefold() in STATE_CODES for value in values), values), {})
    special: dict[str, Callable[[Sequence[str]], Fit]] = {
        "zipcode": _fit_zip,
        "phone": _fit_phone,
        FULL_NAME: _fit_full_name,
    }
    if field in special:
        return special[field](values)
    if field == PERSON_NUMBER or field not in FIELDS:
        return Fit(1.0, {})
    return Fit(share_of(_accepted(field, values), values), {})

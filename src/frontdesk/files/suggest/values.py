"""Looks at the values of a column: how well they fit a field, and the rule that would read them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from frontdesk.eligibility.code_sets import GENDERS, HIPAA_RELATIONSHIPS, STATE_CODES
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.hints import day_exists
from frontdesk.eligibility.values import EARLIEST_DOB, FieldContext
from frontdesk.files.dates import EXCEL_SERIAL, date_reader, parse_format
from frontdesk.files.names import NAME_SUFFIXES
from frontdesk.files.rules import NAME_PARTS
from frontdesk.files.suggest.names import (
    BOOLEAN_OF,
    FULL_NAME,
    GENDER_NUMBERS,
    GENDER_OF,
    PERSON_NUMBER,
    RELATIONSHIP,
    RELATIONSHIP_OF,
)
from frontdesk.text import Rejected, RejectedParts

_OPEN_DATES = ("9999-12-31", "9999-12-30", "2999-12-31", "9999-01-01", "4712-12-31")
_MONTH_FIRST = ("MM/DD/YYYY", "MM-DD-YYYY", "MM.DD.YYYY", "MMDDYYYY", "MM/DD/YY", "MM-DD-YY")
_DAY_FIRST = ("DD.MM.YYYY", "DD/MM/YYYY", "DD-MM-YYYY", "DDMMYYYY", "DD.MM.YY", "DD/MM/YY", "DD-MM-YY")
_YEAR_FIRST, _IN_WORDS = (
    ("YYYY-MM-DD", "YYYY/MM/DD", "YYYYMMDD"),
    ("DD-MON-YYYY", "DD MON YYYY", "MON DD, YYYY", "DD-MON-YY"),
)
_PLAIN_DATES = (*_YEAR_FIRST, *_IN_WORDS, EXCEL_SERIAL)
_ENOUGH = 0.02  # a format that reads fewer of the values is a slip of somebody's pen
_LOOKED_AT = 300  # each format is tried on each of them
_ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(?! )")  # with a space before the time it is none
# What stands for no end in columns of dates.
_NO_DATE = re.compile("0{1,4}(?:[-/.]0{1,4}){0,2}|n/?a|none|null|-+|present|current|active|ongoing")
_SERIAL = re.compile("(?:[1-9][0-9]{4}|295846[0-5])(?:[.]0+)?")


class DateHabit(NamedTuple):
    """What the whole file tells of its dates: whether the day goes before the month, as far as can be told, and the year now."""

    day_first: bool
    year: int
    is_sure: bool = True


class Fit(NamedTuple):
    """The share of the values that the field takes after `rule`, 0 to 1. `is_sure` is False where the rule is a guess."""

    share: float
    rule: dict[str, Any]
    is_sure: bool = True


def _share(good: int, values: Sequence[str]) -> float:
    return good / len(values) if values else 1.0


def date_habit(columns: Sequence[Sequence[str]], *, year: int) -> DateHabit:
    """The order of day and month in all columns together. Without a day above 12, points between them decide."""
    month_first = day_first = points = 0
    for values in columns:
        for value in values[:200]:
            found = re.match("([0-9]{1,2})([/.-])([0-9]{1,2})[/.-](?:[0-9]{4}|[0-9]{2})(?![0-9])", value)
            if found:
                month_first += int(found[3]) > 12 >= int(found[1])
                day_first += int(found[1]) > 12 >= int(found[3])
                points += found[2] == "."
    if month_first or day_first:
        return DateHabit(day_first > month_first, year)
    return DateHabit(points > 0, year, is_sure=points > 0)


def _fit_dates(values: Sequence[str], field: str, habit: DateHabit) -> Fit:
    order = (*_DAY_FIRST, *_MONTH_FIRST) if habit.day_first else (*_MONTH_FIRST, *_DAY_FIRST)
    pivot = habit.year % 100 if field == "dob" else 99 if field == "expiry_date" else (habit.year + 10) % 100
    values = values[:_LOOKED_AT]
    left = Counter(value for value in values if not _ISO.match(value) or _NO_DATE.fullmatch(value))
    no_ends = {value.casefold() for value in left if _NO_DATE.fullmatch(value.casefold())}
    if field == "expiry_date":
        left = Counter({value: count for value, count in left.items() if value.casefold() not in no_ends})
    read = {value[:10] for value in values if _ISO.match(value)}
    formats: list[str] = []
    while left:
        known = [
            (_readable(left, name, pivot, field, habit.year), name)
            for name in (*_PLAIN_DATES, *order)
            if name not in formats
        ]
        best, name = max(known, key=lambda pair: sum(left[value] for value in pair[0]))
        if sum(left[value] for value in best) <= _ENOUGH * len(values):
            break
        formats.append(name)
        read |= set(best.values())
        left = Counter({value: count for value, count in left.items() if value not in best})
    rule: dict[str, Any] = {"dates": formats} if formats else {}
    if no_ends and field == "expiry_date":
        rule["values"] = dict.fromkeys(sorted(no_ends))
    if any("YY" in name and "YYYY" not in name for name in formats):
        rule["pivot"] = pivot
    is_open = [day for day in _OPEN_DATES if day in read]
    if is_open and field == "expiry_date":
        rule["open"] = is_open
    ambiguous = any(name in _MONTH_FIRST or name in _DAY_FIRST for name in formats)
    return Fit(_share(len(values) - left.total(), values), rule, habit.is_sure or not ambiguous)


def _readable(values: Iterable[str], name: str, pivot: int, field: str, year: int) -> dict[str, str]:
    """The values that the format reads as a likely date, with that date."""
    known = parse_format(name)
    if known is None or (name == EXCEL_SERIAL and not any(map(_SERIAL.fullmatch, values))):
        return {}
    read = date_reader([known], pivot)
    found = {value: read(value) for value in values}
    latest = f"{year}-12-31" if field == "dob" else "9999-12-31"
    return {
        value: day
        for value, day in found.items()
        if day != value
        and (EARLIEST_DOB <= day <= latest)
        and day_exists(day)
        and (name != EXCEL_SERIAL or _SERIAL.fullmatch(value))
    }


def _fit_words(
    values: Sequence[str], known: dict[str, Any], own: Sequence[str], *, blanks: Any = None
) -> Fit:
    words = {value.casefold() for value in values}
    rule = {word: known[word] for word in sorted(words) if word in known and word not in own}
    good = sum(value.casefold() in known or value.casefold() in own for value in values)
    if blanks is not None:
        rule[""] = blanks
    return Fit(_share(good, values), {"values": rule} if rule else {})


def _fit_gender(values: Sequence[str], *, has_blanks: bool) -> Fit:
    """Numbers are read by ISO 5218, which not every sender means."""
    blanks = "unknown" if has_blanks else None
    if values and GENDER_NUMBERS.keys() >= set(values):
        return _fit_words(values, GENDER_NUMBERS, (), blanks=blanks)._replace(is_sure=False)
    return _fit_words(values, GENDER_OF, GENDERS, blanks=blanks)


def _fit_zip(values: Sequence[str]) -> Fit:
    short = any(re.fullmatch("[0-9]{3,4}(?:-[0-9]{4})?", value) for value in values)
    good = sum(bool(re.fullmatch("[0-9]{3,5}(?:-?[0-9]{4})?", value)) for value in values)
    return Fit(_share(good, values), {"pad": 5} if short else {})


def _fit_phone(values: Sequence[str]) -> Fit:
    cut = NAME_PARTS["phone"]
    has_extension = any(cut(value) != value for value in values)
    good = _accepted("phone", [cut(value) for value in values])
    return Fit(_share(good, values), {"part": "phone"} if has_extension else {})


def _fit_full_name(values: Sequence[str]) -> Fit:
    return Fit(_share(sum(len(value.split()) > 1 for value in values), values), {})


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


def _fit_person_number(values: Sequence[str]) -> Fit:
    """`Suffix` may also be that of a name."""
    return Fit(_share(sum(value.casefold().rstrip(".") not in NAME_SUFFIXES for value in values), values), {})


_FITS: dict[str, Callable[[Sequence[str]], Fit]] = {
    "medical_eligibility": lambda values: _fit_words(values, BOOLEAN_OF, ("true", "false")),
    "medical_enrollment": lambda values: _fit_words(values, BOOLEAN_OF, ("true", "false")),
    "state": lambda values: Fit(_share(sum(value.casefold() in STATE_CODES for value in values), values), {}),
    "zipcode": _fit_zip,
    "phone": _fit_phone,
    FULL_NAME: _fit_full_name,
    PERSON_NUMBER: _fit_person_number,
    RELATIONSHIP: lambda values: _fit_words(
        values, RELATIONSHIP_OF, [*map(str.casefold, HIPAA_RELATIONSHIPS)]
    ),
}


def fit_of(field: str, values: Sequence[str], habit: DateHabit, *, has_blanks: bool) -> Fit:
    """How well the values of a column, without the blank ones, fit the field."""
    if field in ("dob", "effective_date", "expiry_date"):
        return _fit_dates(values, field, habit)
    if field == "gender":
        return _fit_gender(values, has_blanks=has_blanks)
    if field in _FITS:
        return _FITS[field](values)
    return Fit(_share(_accepted(field, values), values) if field in FIELDS else 1.0, {})

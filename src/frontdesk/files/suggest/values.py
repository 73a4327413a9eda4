"""Looks at the values of a column: how well they fit a field, and the rule that would read them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
_PLAIN_DATES = (
    *("YYYY-MM-DD", "YYYY/MM/DD", "YYYYMMDD", "DD-MON-YYYY", "DD MON YYYY", "MON DD, YYYY", "DD-MON-YY"),
    EXCEL_SERIAL,
)
_ENOUGH = 0.02  # a format that reads fewer of the values is a slip of somebody's pen
_LOOKED_AT = 300  # each format is tried on each of them
_ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(?! )")  # with a space before the time it is none
# What stands for no end in columns of dates.
_NO_DATE = re.compile("0{1,4}(?:[-/.]0{1,4}){0,2}|n/?a|none|null|-+|present|current|active|ongoing")
_SERIAL = re.compile("(?:[1-9][0-9]{4}|295846[0-5])(?:[.]0+)?")
_ORDER = re.compile("([0-9]{1,2})([/.-])([0-9]{1,2})[/.-](?:[0-9]{4}|[0-9]{2})(?![0-9])")

_YES_OR_NO = (BOOLEAN_OF, ("true", "false"))
# By field: the value of each word, and the words that are values already.
_WORDS: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "medical_eligibility": _YES_OR_NO,
    "medical_enrollment": _YES_OR_NO,
    "gender": (GENDER_OF, GENDERS),
    "state": ({}, [*STATE_CODES]),
    RELATIONSHIP: (RELATIONSHIP_OF, [*map(str.casefold, HIPAA_RELATIONSHIPS)]),
}


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


def fit_of(field: str, values: Sequence[str], habit: DateHabit, *, has_blanks: bool) -> Fit:
    """How well the values of a column, without the blank ones, fit the field."""
    rule: dict[str, Any] = {}
    good: Iterable[object] = [True] * len(values)
    if field in ("dob", "effective_date", "expiry_date"):
        return _fit_dates(values, field, habit)
    if field in _WORDS:
        return _fit_words(values, field, has_blanks=has_blanks)
    if field == "zipcode":
        good = [re.fullmatch("[0-9]{3,5}(?:-?[0-9]{4})?", value) for value in values]
        rule = {"pad": 5} if any(re.fullmatch("[0-9]{3,4}(?:-[0-9]{4})?", value) for value in values) else {}
    elif field == "phone":
        cut = [NAME_PARTS["phone"](value) for value in values]
        good = [_accepts(field, value) for value in cut]
        rule = {"part": "phone"} if cut != values else {}
    elif field == FULL_NAME:
        good = [len(value.split()) > 1 for value in values]
    elif field == PERSON_NUMBER:  # `Suffix` may also be that of a name
        good = [value.casefold().rstrip(".") not in NAME_SUFFIXES for value in values]
    elif field in FIELDS:
        good = [_accepts(field, value) for value in values]
    return Fit(_share(sum(map(bool, good)), values), rule)


def _share(good: int, values: Sequence[str]) -> float:
    return good / len(values) if values else 1.0


def _accepts(field: str, value: str) -> bool:
    kind = FIELDS[field].kind
    try:
        kind.read(value if kind.from_text is None else kind.from_text(value), FieldContext("9999-12-31"))
    except (Rejected, RejectedParts):
        return False
    return True


def _fit_words(values: Sequence[str], field: str, *, has_blanks: bool) -> Fit:
    """Genders in numbers are read by ISO 5218, which not every sender means."""
    known, own = _WORDS[field]
    is_guess = field == "gender" and bool(values) and GENDER_NUMBERS.keys() >= set(values)
    if is_guess:
        known = GENDER_NUMBERS
    words = Counter(value.casefold() for value in values)
    rule = {word: known[word] for word in sorted(words) if word in known and word not in own}
    good = sum(count for word, count in words.items() if word in known or word in own)
    if field == "gender" and has_blanks:
        rule[""] = "unknown"
    return Fit(_share(good, values), {"values": rule} if rule else {}, not is_guess)


def date_habit(columns: Sequence[Sequence[str]], *, year: int) -> DateHabit:
    """The order of day and month in all columns together. Without a day above 12, points between them decide."""
    month_first = day_first = points = 0
    for found in (_ORDER.match(value) for values in columns for value in values[:200]):
        if found:
            month_first += int(found[3]) > 12 >= int(found[1])
            day_first += int(found[1]) > 12 >= int(found[3])
            points += found[2] == "."
    if month_first or day_first:
        return DateHabit(day_first > month_first, year)
    return DateHabit(points > 0, year, is_sure=points > 0)


def _fit_dates(values: Sequence[str], field: str, habit: DateHabit) -> Fit:
    values, is_end = values[:_LOOKED_AT], field == "expiry_date"
    pivot = habit.year % 100 if field == "dob" else 99 if is_end else (habit.year + 10) % 100
    latest = f"{habit.year}-12-31" if field == "dob" else "9999-12-31"
    no_ends = {value.casefold() for value in values if is_end and _NO_DATE.fullmatch(value.casefold())}
    dated = [value for value in values if value.casefold() not in no_ends]
    days = {value[:10] for value in dated if _ISO.match(value)}
    left = Counter(value for value in dated if not _ISO.match(value))
    order = (*_DAY_FIRST, *_MONTH_FIRST) if habit.day_first else (*_MONTH_FIRST, *_DAY_FIRST)
    formats: list[str] = []
    while left:
        read_by = {
            name: _likely_days(left, name, pivot, latest)
            for name in (*_PLAIN_DATES, *order)
            if name not in formats
        }
        best = max(read_by, key=lambda name: sum(left[value] for value in read_by[name]))
        if sum(left[value] for value in read_by[best]) <= _ENOUGH * len(values):
            break
        formats.append(best)
        days |= set(read_by[best].values())
        left = Counter({value: count for value, count in left.items() if value not in read_by[best]})
    rule: dict[str, Any] = {"dates": formats} if formats else {}
    if no_ends:
        rule["values"] = dict.fromkeys(sorted(no_ends))
    if any("YYYY" not in name and name != EXCEL_SERIAL for name in formats):
        rule["pivot"] = pivot
    if is_end and (is_open := [day for day in _OPEN_DATES if day in days]):
        rule["open"] = is_open
    is_ambiguous = not {*_MONTH_FIRST, *_DAY_FIRST}.isdisjoint(formats)
    return Fit(_share(len(values) - left.total(), values), rule, habit.is_sure or not is_ambiguous)


def _likely_days(values: Iterable[str], name: str, pivot: int, latest: str) -> dict[str, str]:
    """The values that the format reads as a likely date, with that date."""
    if name == EXCEL_SERIAL:
        values = [*filter(_SERIAL.fullmatch, values)]
    if (known := parse_format(name)) is None:
        return {}
    read = date_reader([known], pivot)
    days = {value: read(value) for value in values}
    return {
        value: day
        for value, day in days.items()
        if day != value and EARLIEST_DOB <= day <= latest and day_exists(day)
    }

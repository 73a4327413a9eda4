"""Finds the formats of dates in a column, and whether the day or the month is written first."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from frontdesk.eligibility.hints import day_exists
from frontdesk.eligibility.values import EARLIEST_DOB
from frontdesk.files.dates import EXCEL_SERIAL, date_reader, parse_format

OPEN_DATES = ("9999-12-31", "9999-12-30", "2999-12-31", "9999-01-01", "4712-12-31")
_MONTH_FIRST = ("MM/DD/YYYY", "MM-DD-YYYY", "MM.DD.YYYY", "MMDDYYYY", "MM/DD/YY", "MM-DD-YY")
_DAY_FIRST = ("DD.MM.YYYY", "DD/MM/YYYY", "DD-MM-YYYY", "DDMMYYYY", "DD.MM.YY", "DD/MM/YY", "DD-MM-YY")
_PLAIN_DATES = (
    "YYYY-MM-DD",
    "YYYY/MM/DD",
    "YYYYMMDD",
    "DD-MON-YYYY",
    "DD MON YYYY",
    "MON DD, YYYY",
    "DD-MON-YY",
    EXCEL_SERIAL,
)
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


def share_of(good: int, values: Sequence[str]) -> float:
    return good / len(values) if values else 1.0


def date_habit(columns: Sequence[Sequence[str]], *, year: int, is_foreign: bool) -> DateHabit:
    """The order of day and month in all columns together. Without a day above 12, `is_foreign` (of a header that is not
    English, or semicolons) and points decide."""
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
    return DateHabit(is_foreign or points > 0, year, is_sure=points > 0)


def fit_of_dates(values: Sequence[str], field: str, habit: DateHabit) -> Fit:
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
    is_open = [day for day in OPEN_DATES if day in read]
    if is_open and field == "expiry_date":
        rule["open"] = is_open
    ambiguous = any(name in _MONTH_FIRST or name in _DAY_FIRST for name in formats)
    return Fit(share_of(len(values) - left.total(), values), rule, habit.is_sure or not ambiguous)


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

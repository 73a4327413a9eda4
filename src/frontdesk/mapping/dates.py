"""Dates as senders write them, by formats that a mapping names, such as `MM/DD/YYYY` (docs/file-formats.md)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import permutations

EXCEL_SERIAL = "excel"

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TOKEN = re.compile("YYYY|YY|MON|MM|M|DD|D")
_ANY_ORDER = ("".join(order) for order in permutations(("(?:YYYY|YY)S", "(?:MON|MM|M)S", "(?:DD|D)S")))
DATE_FORMAT = re.compile("|".join(order[:-1].replace("S", "[-/., ]{0,3}") for order in _ANY_ORDER))
_KIND = {"YYYY": "year", "YY": "short", "MON": "name", "MM": "month", "M": "month", "DD": "day", "D": "day"}
_DIGITS = {"year": "[0-9]{4}", "short": "[0-9]{2}", "name": "[A-Za-z]{3,9}"}
_TIME = "(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?(?: ?[AaPp][Mm])?)?"
_LONGEST = 40

# Excel counts a 29 February 1900, which never was: its day 60.
_SERIAL = re.compile("([0-9]{1,7})(?:[.][0-9]{1,12})?")
_BEFORE_DAY_60, _AFTER_DAY_60, _DAY_60 = date(1899, 12, 31), date(1899, 12, 30), 60
_LAST_SERIAL = 2_958_465  # 9999-12-31


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A format; `pattern` is None for Excel's serial numbers."""

    pattern: re.Pattern[str] | None
    has_short_year: bool = False


def parse_format(text: str) -> DateFormat | None:
    """The format that the text names; None if it names none."""
    if text.strip().lower() == EXCEL_SERIAL:
        return DateFormat(None)
    text = text.strip().upper()
    if not DATE_FORMAT.fullmatch(text):
        return None
    # Without anything between them, day and month have two digits.
    digits = "[0-9]{1,2}" if re.search("[-/., ]", text) else "[0-9]{2}"
    pattern = _TOKEN.sub(
        lambda token: f"(?P<{(kind := _KIND[token[0]])}>{_DIGITS.get(kind, digits)})",
        text.replace(".", "[.]"),
    )
    return DateFormat(re.compile(pattern + _TIME), "(?P<short>" in pattern)


def date_reader(formats: Sequence[DateFormat], pivot: int | None) -> Callable[[str], str]:
    """A function that writes a date in one of the formats as YYYY-MM-DD, by the first that fits, and a day that does not exist
    (30 February) if none does, so that it is refused as that. Any other text, and an ISO date, stays as it is. Two-digit years up
    to `pivot` are 20YY, the others 19YY."""

    @lru_cache(maxsize=1024)
    def read(text: str) -> str:
        missing_day = text
        for each in formats:
            found = _serial(text) if each.pattern is None else _matched(each.pattern, text, pivot or 0)
            if isinstance(found, date):
                return found.isoformat()
            missing_day = found or missing_day
        return missing_day

    return lambda text: read(text) if len(text) <= _LONGEST else text


def _serial(text: str) -> date | None:
    found = _SERIAL.fullmatch(text)
    day = int(found[1]) if found else 0
    if not 1 <= day <= _LAST_SERIAL or day == _DAY_60:
        return None
    return (_AFTER_DAY_60 if day > _DAY_60 else _BEFORE_DAY_60) + timedelta(day)


def _matched(pattern: re.Pattern[str], text: str, pivot: int) -> date | str | None:
    """The date; or as text one that the calendar does not have; or None."""
    found = pattern.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    short, day = int(parts.get("short") or 0), int(parts["day"])
    year = int(parts.get("year") or (2000 if short <= pivot else 1900) + short)
    name = parts.get("name", "")[:3].lower()
    month = int(parts.get("month") or (_MONTHS.index(name) + 1 if name in _MONTHS else 0))
    try:
        return date(year, month, day)
    except ValueError:
        return f"{year:04}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else None

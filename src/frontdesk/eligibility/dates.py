"""Reading a calendar date out of an ISO 8601 date or timestamp; which field it is for, and what it may be, is not known here."""

import re
from datetime import date
from functools import lru_cache

from frontdesk.text import Rejected, trimmed

_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt]((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?)"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
_DATE_LENGTH = len("2026-01-01T00:00:00.000000000+00:00")
_MIDNIGHT = re.compile(r"[0:.,]*")


def calendar_date(value: object) -> tuple[str, bool]:
    """The date as written, and whether its time is midnight (or absent). Raises Rejected."""
    if type(value) is not str:
        raise Rejected("wrong_type", "must be a string")
    text = trimmed(value)
    # The cache keeps what it is asked for, so nothing longer than a date may come near it.
    found = _read_calendar_date(text) if len(text) <= _DATE_LENGTH else None
    if found is None:
        raise Rejected("not_a_date", "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp")
    return found


@lru_cache(maxsize=4096)
def _read_calendar_date(text: str) -> tuple[str, bool] | None:
    """The calendar date as written, never moved to another zone, and whether its time is midnight (or absent)."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, time = found.groups()
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return None
    return text[:10], time is None or _MIDNIGHT.fullmatch(time) is not None

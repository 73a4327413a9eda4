"""The day of which a full file is the list, if that comes later than the file: a roster of next
month, a census of an open enrolment (docs/files.md, Full files). Pure.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache

from frontdesk.eligibility.coverages import ChangeKind
from frontdesk.eligibility.model import Action
from frontdesk.mapping.model import Row

_DAY_LENGTH = len("2026-01-01")


def begin_of(row: Row) -> str:
    """The day on which the access of a row begins (`YYYY-MM-DD`), "" if it does not say so."""
    begins = [change.begin for change in row.context.coverages if change.kind is ChangeKind.SET]
    if begins:
        return min(begins)
    begin = row.values.get("effective_date")
    return _day(begin.strip()[:_DAY_LENGTH]) if isinstance(begin, str) else ""


def _in_a_year(today: str) -> str:
    return (date.fromisoformat(today) + timedelta(days=366)).isoformat()


@lru_cache(maxsize=1024)  # most rows of a file begin on few days
def _day(text: str) -> str:
    """The text if it is a day, else "": the row will be refused for it."""
    try:
        is_day = date.fromisoformat(text).isoformat() == text
    except ValueError:
        return ""
    return text if is_day else ""


def likely_list_day(sample: Iterable[Row], today: str) -> str:
    """The day after today, within a year, on which most members in a sample begin; "" without one."""
    begins = [begin_of(row) for row in sample if _lists_a_member(row, today)]
    for day, count in Counter(begins).most_common(1):
        if today < day <= _in_a_year(today) and count > len(begins) / 2:
            return day
    return ""


def is_list_of(rows: Iterable[Row], day: str, today: str) -> bool:
    """Whether most of the members in the rows begin on the day."""
    listed = 0
    beginning = 0
    for row in rows:
        if _lists_a_member(row, today):
            listed += 1
            beginning += begin_of(row) == day
    return beginning > listed / 2


def _lists_a_member(row: Row, today: str) -> bool:
    """Whether the row is that of a member with access, now or later. Many rosters go on to name for
    a month those who have left: such a row says nothing of the day of the list.
    """
    if row.skipped or row.action is Action.END:
        return False
    end = row.values.get("expiry_date")
    return not isinstance(end, str) or (_day(end.strip()[:_DAY_LENGTH]) or today) >= today

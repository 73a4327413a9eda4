"""The clock, and the calendar day where members live. No other module asks the operating system for
the time.

A clock is any function that returns an aware UTC datetime. Tests pass one that they can set.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

Clock = Callable[[], datetime]

system_clock: Clock = partial(datetime.now, UTC)

# Of the places in which American members live, the one where a day ends last.
_LAST_ZONE = ZoneInfo("Pacific/Honolulu")
_QUARTER = 900  # seconds


class AccountDay(NamedTuple):
    """The days (`YYYY-MM-DD`) that it may be now where the members of an account live."""

    earliest: str
    latest: str


def account_day(now: datetime, time_zone: str | None) -> AccountDay:
    """The day at `now` in the account's time zone, which is both the earliest and the latest.

    Without a time zone nobody knows where the members live: a day lasts from its beginning in UTC
    to its end in Honolulu, so for ten hours two days count. An access that ends on the earliest
    day, or begins on the latest, is open.
    """
    return _account_day(int(now.timestamp()) // _QUARTER, time_zone)


@lru_cache(maxsize=1024)  # each request asks, and its answer takes 2 µs
def _account_day(quarter: int, time_zone: str | None) -> AccountDay:
    """The day in this quarter of an hour since 1970: days begin at a full quarter everywhere."""
    begin = datetime.fromtimestamp(quarter * _QUARTER, UTC)
    if time_zone is not None:
        day = begin.astimezone(ZoneInfo(time_zone)).date().isoformat()
        return AccountDay(day, day)
    earliest = begin.astimezone(_LAST_ZONE).date().isoformat()
    return AccountDay(earliest, begin.date().isoformat())


def find_time_zone(name: str) -> ZoneInfo | None:
    """The time zone of this name in the IANA database of time zones, such as `America/New_York`.

    >>> find_time_zone("UTC")
    zoneinfo.ZoneInfo(key='UTC')
    >>> find_time_zone("localtime") is None
    True
    """
    return ZoneInfo(name) if name in _names_of_zones() else None


@cache
def _names_of_zones() -> frozenset[str]:
    """The names of the machine's database, in 5 ms. It also has files that mean another zone on each
    machine, or none; and those below `posix` and `right`, which Python leaves out.
    """
    return frozenset(available_timezones() - {"localtime", "posixrules", "Factory"})

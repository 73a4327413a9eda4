"""The clock, and the two ways in which times are written. No other module asks the operating system for the time.

A clock is any function that returns an aware UTC datetime. Tests pass one that they can set.
"""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def wire_time(moment: datetime) -> str:
    """A time as the interface writes it: UTC, whole seconds, `2016-09-28T23:33:32Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def stored_time(moment: datetime) -> str:
    """A time as the databases take it: UTC, microseconds, always 27 characters so that text sorts like time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"

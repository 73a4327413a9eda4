"""The clock. No other module asks the operating system for the time.

A clock is any function that returns an aware UTC datetime. Tests pass one that they can set.
"""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)

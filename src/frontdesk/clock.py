"""The clock. No other module asks the operating system for the time.

A clock is any function that returns an aware UTC datetime. Tests pass one that they can set.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

Clock = Callable[[], datetime]

system_clock: Clock = partial(datetime.now, UTC)

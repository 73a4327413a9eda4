"""What the answer to an immediate invitation says of the account's hourly limit: an estimate. The
claim enforces the limit.

A process keeps a figure for each account and takes a place of it for each invitation. It reads the
figure again after seconds, in the round trip that reads the settings, and only for records that ask
for an immediate invitation.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from frontdesk.db.sets import Row, SetTransaction
from frontdesk.invitations.hourly_window import SECOND_US, HourlyWindows
from frontdesk.invitations.model import Delivery, HourlyWindow
from frontdesk.invitations.store import limits

FRESH = timedelta(seconds=5)
FRESH_WITH_PLENTY = timedelta(seconds=30)  # while half of the places are left


@dataclass(slots=True)
class _Figure:
    left: int
    read_at: datetime
    fresh_for: timedelta


_figures: WeakKeyDictionary[Any, dict[int, _Figure]] = WeakKeyDictionary()  # by engine
_WINDOWS = HourlyWindows()  # for its slices only


class AccountPlaces:
    """The places of a chunk's accounts. A dry run doesn't reserve them."""

    def __init__(self, figures: dict[int, _Figure], *, reserve: bool) -> None:
        self._left = (
            {} if reserve else {account_id: each.left for account_id, each in figures.items()}
        )
        self._figures = figures
        self._reserve = reserve

    def take(self, account_id: int) -> bool:
        """Take one place; False when the account has none left. True for an account without a
        figure.
        """
        figure = self._figures.get(account_id)
        if figure is None:
            return True
        if self._reserve:
            figure.left -= 1
            return figure.left >= 0
        self._left[account_id] -= 1
        return self._left[account_id] >= 0


def find_places(
    tx: SetTransaction, account_ids: Collection[int], *, now: datetime, reserve: bool
) -> Callable[[], AccountPlaces]:
    """Ask for the figures of these accounts that are not fresh: at most one set read.

    Returns a function that gives the places once the round trip has ended.
    """
    figures = _figures.setdefault(tx.engine, {})
    stale = [each for each in account_ids if each not in figures or _is_stale(figures[each], now)]
    found = limits.find_immediate_places(tx, stale) if stale else None

    def places() -> AccountPlaces:
        for row in found.rows if found is not None else ():
            figures[row["account_id"]] = _figure(row, now)
        return AccountPlaces(
            {each: figures[each] for each in account_ids if each in figures}, reserve=reserve
        )

    return places


def _is_stale(figure: _Figure, now: datetime) -> bool:
    return abs(now - figure.read_at) > figure.fresh_for


def _figure(row: Row, now: datetime) -> _Figure:
    limit = row["hourly_limit"]
    left = limit - row["in_line"] - _left_in_window(row, now)
    fresh_for = FRESH_WITH_PLENTY if left > limit / 2 else FRESH
    return _Figure(left, now, fresh_for)


def _left_in_window(row: Row, now: datetime) -> int:
    """How many left in the hour before now. Between writes the window's time stands still, so the
    wall clock goes on here.
    """
    if row["measured_us"] is None:
        return 0
    wall_at = row["wall_at"]
    if isinstance(wall_at, str):
        wall_at = datetime.fromisoformat(wall_at)
    sent = row["sent"]
    if isinstance(sent, str):  # SQLite keeps JSON as text
        sent = orjson.loads(sent)
    passed = max(0.0, (now - wall_at).total_seconds())
    measured_us = row["measured_us"] + int(passed * SECOND_US)
    empty = HourlyWindow.empty(row["account_id"], Delivery.IMMEDIATE, now)
    window = empty._replace(measured_us=measured_us, sent=sent)
    return sum(count for _, count in _WINDOWS.counted(window))

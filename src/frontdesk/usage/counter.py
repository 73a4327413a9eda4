"""Counts what accounts add to the database: in memory, and every few seconds into a row per account
and day.

A row that each write updated would make an account's concurrent writes wait for each other. So a
process adds up, and its quotas are checked against the totals that it read last: it can overshoot
by what it and the other processes store in that time. A process that is killed loses what it has
not written yet.
"""

import threading
import time
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Unavailable
from frontdesk.usage import store
from frontdesk.usage.model import Quota, StorageUsedUp, Usage

SAVE_SECONDS = 5.0


class UsageCounter:
    """The counts of this process for one database. Any thread may use it."""

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._saving = threading.Lock()
        self._added: dict[int, Usage] = {}
        # Accounts by the totals of the last `save`, which were those of one day.
        self.used_up: frozenset[int] = frozenset()
        self.without_trail: frozenset[int] = frozenset()
        self._totals_of = ""
        self.due_at = float("-inf")  # of the next `save`, on the monotonic clock

    def add(self, account_id: int, usage: Usage) -> None:
        with self._counting:
            before = self._added.get(account_id)
            if before is not None:
                usage = Usage(before[0] + usage[0], before[1] + usage[1], before[2] + usage[2])
            self._added[account_id] = usage

    def refuse_used_up(self, account_id: int, now: datetime) -> None:
        """Raises StorageUsedUp. Asks nothing: the totals are those of the last `save`."""
        if account_id in self.used_up and self._totals_of == _day(now):
            raise StorageUsedUp(now)

    def refuse_used_up_trail(self, account_id: int, now: datetime) -> None:
        """Raises StorageUsedUp if the account may add no audit entry any more. Asks nothing, as
        `refuse_used_up`.
        """
        if account_id in self.without_trail and self._totals_of == _day(now):
            raise StorageUsedUp(now)

    def postpone(self) -> None:
        """The next `save` is due in SAVE_SECONDS: the caller begins one now."""
        self.due_at = time.monotonic() + SAVE_SECONDS

    def save(self, db: Database, now: datetime) -> None:
        """Add the counts to the database, and read the day's totals and the quotas. While the
        database is away, the counts stay in memory.
        """
        self.postpone()
        with self._saving:
            with self._counting:
                added = self._added
                self._added = {}
            try:
                used_up, without_trail = write_alone(db, lambda tx: _save(tx, _day(now), added))
            except BaseException as error:
                for account_id, usage in added.items():
                    self.add(account_id, usage)
                if isinstance(error, Unavailable):
                    return
                raise
            self._totals_of = _day(now)
            self.used_up = used_up
            self.without_trail = without_trail

    def save_rest(self, db: Database, now: datetime) -> None:
        """At the end of the process."""
        if self._added:
            self.save(db, now)


_counters: WeakKeyDictionary[Any, UsageCounter] = WeakKeyDictionary()  # by pool of connections
_making = threading.Lock()


def counter_of(engine: Any) -> UsageCounter:
    """The counter of this process for the engine's database. The engines of a Database for reads
    and writes share their pool.
    """
    # a pipeline's, if it belongs to no Database, has none
    pool = getattr(engine.engine, "pool", engine)
    counter = _counters.get(pool)
    if counter is None:
        with _making:
            counter = _counters.setdefault(pool, UsageCounter())
    return counter


def forget(engine: Any) -> None:
    """Drop the counter of a database whose accounts are gone, with what it has not stored."""
    _counters.pop(engine.pool, None)


def count(
    engine: Any, account_id: int, *, history: int = 0, answers: int = 0, files: int = 0
) -> None:
    """Count bytes that the account adds to the engine's database. A transaction that is run again
    counts again.
    """
    counter_of(engine).add(account_id, Usage(history, answers, files))


def _save(tx: Tx, day: str, added: dict[int, Usage]) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the accounts that have used up a quota, and those that may add no audit entry any
    more.
    """
    store.add_usage(tx, day, added)
    totals = store.usage_of_day(tx, day)
    quotas = store.list_quotas(tx)
    used_up = set[int]()
    without_trail = set[int]()
    for account_id, usage in totals.items():
        quota = quotas.get(account_id) or Quota(account_id)
        if quota.is_used_up_by(usage):
            used_up.add(account_id)
        if quota.ends_trail_at(usage):
            without_trail.add(account_id)
    return frozenset(used_up), frozenset(without_trail)


def _day(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()

"""Deletes or erases data after its retention, in small transactions (docs/erasure.md,
docs/configuration.md).

Any number of workers may run it at the same time: each batch checks its rows again in its own
transaction. A legal hold keeps its member, with history, invitation and the reports of the account;
any hold keeps the whole audit trail.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from frontdesk import audit, users
from frontdesk.audit import Requester
from frontdesk.audit.chain import ChainEnd, TrailPruning, sealed
from frontdesk.clock import Clock
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.events.model import EVENT_DAYS
from frontdesk.privacy import store
from frontdesk.privacy.erasure import erase_old
from frontdesk.privacy.model import RetentionKind

_K = RetentionKind
BATCH = 100  # rows in one transaction: SQLite has one writer, for which other writes wait
AUDIT_BATCH = 1000
MAILBOX_DAYS = 90
ANSWER_DAYS = 1
COUNTER_DAYS = 2
BROWSER_DAYS = 180  # beside that: without a sign-in a browser is no longer known for a user
GUARDED = (_K.HISTORY, _K.AUDIT)
TURN_HOUR = 3  # UTC
DAYS_OF_YEAR = 366  # so that years are never shorter than the database's
TURN = "turn"  # among the positions: when the last turn began, in seconds since 1970

Counts = dict[RetentionKind, int]


def retention_days(config: Config) -> Counts:
    """The days of retention by kind, without the kinds that are kept for ever."""
    days = {
        _K.REPORTS: config.keep_reports_days,
        _K.INVITATIONS: config.keep_invitations_days,
        _K.WITHDRAWN: config.keep_withdrawn_days,
        _K.ENDED: config.keep_ended_years * DAYS_OF_YEAR,
        _K.HISTORY: config.keep_history_years * DAYS_OF_YEAR,
        _K.AUDIT: config.keep_audit_years * DAYS_OF_YEAR,
        # Entries of the trail name a user by id: the name is known as long as they are.
        _K.USERS: config.keep_audit_years * DAYS_OF_YEAR,
        _K.EVENTS: EVENT_DAYS,
        _K.MAILBOX: MAILBOX_DAYS,
        _K.ANSWERS: ANSWER_DAYS,
        _K.COUNTERS: COUNTER_DAYS,
    }
    return {kind: count for kind, count in days.items() if count}


@dataclass(slots=True)
class RetentionTurn:
    """One pass over all data with a retention. `pause` is called after each batch; True ends the
    turn.
    """

    db: Database
    clock: Clock
    kept: Counts
    requester: Requester
    pause: Callable[[], bool] = lambda: False
    counts: Counts = field(default_factory=dict)
    limits: dict[RetentionKind, datetime] = field(default_factory=dict)

    def run(self) -> Counts:
        """Do the turn; returns the number of pruned rows by kind. Raises Unavailable; committed
        batches stay done.
        """
        self._set_limits()
        self.counts = {}
        works = {_K.AUDIT: self._audit, _K.COUNTERS: self._counters}
        for kind in self.kept:
            count = sum(self._paused(works.get(kind, partial(self._rows, kind))()))
            if count:
                self.counts[kind] = count
        if self.counts:
            write_alone(self.db, self._record)
        return self.counts

    def count(self) -> Counts:
        """The number of due rows by kind. Changes nothing."""
        self._set_limits()
        found = {kind: sum(len(ids) for ids, _ in self._windows(kind)) for kind in self.kept}
        if self.db.ask(store.has_holds):
            found[_K.AUDIT] = 0
        return found

    def _set_limits(self) -> None:
        """The time before which each kind is old enough. The triggers of some go by the database's
        clock.
        """
        now = self.clock()
        database_now = min(now, self.db.ask(database_time))
        for kind, days in self.kept.items():
            self.limits[kind] = (database_now if kind in GUARDED else now) - timedelta(days=days)

    def _paused(self, batches: Iterator[int]) -> Iterator[int]:
        for count in batches:
            yield count
            if self.pause():
                return

    def _windows(self, kind: RetentionKind) -> Iterator[tuple[list[int], int]]:
        """The due rows by windows of ids, each with the id up to which all rows are done.

        The history is read from the end of the last turn up to the first window with a newer entry.
        """
        before = self.limits[kind]
        ask = self.db.ask
        first, last = ask(partial(store.ends_of_ids, kind=kind))
        start = ask(lambda tx: store.get_position(tx, kind)) if kind is _K.HISTORY else first - 1
        for after in range(start, last, store.WINDOW):
            is_done = True
            if kind is _K.HISTORY:
                newest = ask(partial(store.newest_change, after_id=after))
                is_done = newest is None or newest < before
            ids = ask(partial(store.old_ids, kind=kind, before=before, after_id=after))
            yield ids, min(after + store.WINDOW, last) if is_done else after
            if not is_done:
                return

    def _rows(self, kind: RetentionKind) -> Iterator[int]:
        for ids, done in self._windows(kind):
            for first in range(0, len(ids), BATCH):
                yield from self._batch(kind, ids[first : first + BATCH])
            if kind is _K.HISTORY and done:
                write_alone(self.db, partial(store.move_position, kind=kind, position=done))

    def _batch(self, kind: RetentionKind, ids: Sequence[int]) -> Iterator[int]:
        if kind is not _K.REPORTS:
            yield write_alone(self.db, lambda tx: self._apply(tx, kind, ids))
            return
        for file_id in ids:
            while count := write_alone(self.db, partial(self._report, file_id=file_id)):
                yield count

    def _apply(self, tx: Tx, kind: RetentionKind, ids: Sequence[int]) -> int:
        if kind in (_K.WITHDRAWN, _K.ENDED):
            store.lock_members(tx, ids)
        old = store.still_old(tx, kind, self.limits[kind], ids)
        if not old:
            return 0
        match kind:
            case _K.WITHDRAWN | _K.ENDED:
                erase_old(tx, store.persons_of(tx, old), self._requester())
            case _K.INVITATIONS:
                store.empty_invitations(tx, old)
            case _K.HISTORY:
                store.drop_values(tx, "id", old)
            case _K.USERS:
                users.delete_ended(tx, old)
            case _:
                store.delete_rows(tx, kind, old)
        return len(old)

    def _report(self, tx: Tx, file_id: int) -> int:
        if not store.still_old(tx, _K.REPORTS, self.limits[_K.REPORTS], [file_id]):
            return 0
        return store.delete_report_chunk(tx, file_id)

    def _counters(self) -> Iterator[int]:
        yield from self._rows(_K.COUNTERS)
        before = self.limits[_K.COUNTERS]
        yield write_alone(self.db, lambda tx: store.delete_counters(tx, before))
        unseen_since = before - timedelta(days=BROWSER_DAYS)
        yield write_alone(
            self.db, lambda tx: users.delete_expired(tx, before, unseen_since=unseen_since)
        )

    def _audit(self) -> Iterator[int]:
        """From the oldest entry up to the first that is not due."""
        while count := write_alone(self.db, self._prune_audit):
            yield count

    def _prune_audit(self, tx: Tx) -> int:
        """The chain of the export is stored up to the last pruned entry, so that later exports can
        continue.
        """
        if store.has_holds(tx):
            return 0
        after, chain = store.last_pruning(tx) or TrailPruning(0, "")
        old = audit.entries_after(tx, after, until=self.limits[_K.AUDIT], limit=AUDIT_BATCH)
        if not old:
            return 0
        *_, (_, end) = sealed(old, ChainEnd(chain, after))
        return store.prune_audit(tx, after, end.entry_id, end.chain, now=self.clock())

    def _record(self, tx: Tx) -> None:
        detail = {str(kind): count for kind, count in self.counts.items()}
        audit.record_action(tx, self._requester(), "retention.pruned", **detail)
        store.note_emptied(tx)

    def _requester(self) -> Requester:
        """With the present time: an export could miss an entry that is minutes old when it is added
        (docs/decisions/0105).
        """
        return self.requester._replace(now=self.clock())


def begin_turn(tx: Tx, now: datetime) -> bool:
    """Whether a nightly turn is due: once after each 3 o'clock in UTC, for one of all workers."""
    due = now.astimezone(UTC).replace(hour=TURN_HOUR, minute=0, second=0, microsecond=0)
    due -= timedelta(days=now < due)
    return store.move_position(tx, TURN, int(now.timestamp()), only_below=int(due.timestamp()))


def read_upkeep(tx: Tx) -> tuple[datetime | None, int]:
    """When the last nightly turn began, and how many removals of values SQLite's log may still
    hold.
    """
    turn, unclean = (store.get_position(tx, kind) for kind in (TURN, store.EMPTIED))
    unclean -= store.get_position(tx, store.LOG_EMPTIED)
    return datetime.fromtimestamp(turn, UTC) if turn else None, unclean


class LogEmptier:
    """Empties SQLite's write-ahead log of erased values (docs/erasure.md).

    A reader can hold the log. So each removal of values increments a count, and a worker with a new
    count tries until it succeeds.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._done = 0

    def step(self) -> None:
        """Raises Unavailable."""
        if not self._db.is_sqlite:
            return
        count = self._db.ask(lambda tx: store.get_position(tx, store.EMPTIED))
        if count != self._done and self._db.empty_log():
            write_alone(
                self._db,
                lambda tx: store.move_position(tx, store.LOG_EMPTIED, count, only_below=count),
            )
            self._done = count

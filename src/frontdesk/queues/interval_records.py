"""How the intervals of an account's plans have held: kept in its shared snapshot, so that every process has the same.

The record grows with each renewal of the snapshot that is some minutes after the last count. A wait counts once, when it is over.
"""

from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.queues.estimate.intervals import note_wait
from frontdesk.queues.model import IntervalRecords
from frontdesk.queues.store.snapshots import list_outcomes

EVERY = timedelta(minutes=15)
SETTLED = timedelta(minutes=5)  # events of the last minutes may still come
LONGEST = timedelta(days=1)  # what a count looks back at most: without readers nobody was told anything


def counted(tx: Tx, account_id: int, records: IntervalRecords | None, now: datetime) -> IntervalRecords:
    """The records with the waits that ended since they were last counted; the same ones while that is due later."""
    until = now - SETTLED
    if records is None:
        return IntervalRecords(until, {})
    if records.until > now:
        return IntervalRecords(until, records.plans)  # the clock was set back
    if until - records.until < EVERY:
        return records
    plans = dict(records.plans)
    ended = max(records.until, until - LONGEST), until
    for outcome in list_outcomes(tx, ended[0] - LONGEST, account_id=account_id, ended=ended):
        note_wait(plans, outcome.plan_id, outcome.wait_seconds, outcome.low_seconds, outcome.high_seconds)
    return IntervalRecords(until, plans)

"""The SQL of what is counted: failed attempts, and the requests of a minute."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, func, insert, select, update

from frontdesk.access.tables import failed_attempts, request_allowances
from frontdesk.db import Tx

_FAILURES_LOCK = 0x6C6F6769  # "logi": the first key of PostgreSQL's advisory locks on failed attempts


def lock_failures(tx: Tx, subject_hash: bytes) -> None:
    """One transaction at a time counts and records failures of the subject (on SQLite a writer is alone anyway)."""
    if tx.dialect.name != "sqlite":
        key = int.from_bytes(subject_hash[:4], signed=True)
        tx.execute(select(func.pg_advisory_xact_lock(_FAILURES_LOCK, key)))


def failures_within(
    tx: Tx, subject_hash: bytes, *, window: tuple[datetime, datetime], limit: int
) -> list[datetime]:
    """The times of the subject's newest failures, newest first, at most `limit` of them."""
    after, until = window
    query = (
        select(failed_attempts.c.failed_at)
        .where(failed_attempts.c.subject_hash == subject_hash)
        .where(failed_attempts.c.failed_at > after, failed_attempts.c.failed_at <= until)
        .order_by(failed_attempts.c.failed_at.desc())
        .limit(limit)
    )
    return list(tx.execute(query).scalars())


def add_failures(
    tx: Tx, subjects: Iterable[bytes], *, now: datetime, window: tuple[datetime, datetime]
) -> None:
    """Insert the failures, and delete up to 20 outside the window, by the primary key: more than one attempt adds. So the
    table stays small, and the cost of an attempt does not grow."""
    after, until = window
    oldest = select(failed_attempts.c.id).order_by(failed_attempts.c.id).limit(20)
    # Another process is already deleting locked rows, and waiting for each other could be a deadlock.
    mine = failed_attempts.c.id.in_(oldest.with_for_update(skip_locked=True))
    over = (failed_attempts.c.failed_at <= after) | (failed_attempts.c.failed_at > until)
    tx.execute(delete(failed_attempts).where(mine & over))
    tx.execute(insert(failed_attempts), [{"subject_hash": hash_, "failed_at": now} for hash_ in subjects])


def take_allowance(
    tx: Tx, client: int, minute: int, *, block: int, limit: int, share: int
) -> tuple[int, int]:
    """Take up to `block` of the client's requests of this minute: at most one part in `share` of the rest, and at least one
    while there is one. Returns how many were taken, and how many are left for any process."""
    mine = (request_allowances.c.api_client_id == client) & (request_allowances.c.minute == minute)
    taken = tx.execute(select(request_allowances.c.taken).where(mine).with_for_update()).scalar()
    left = max(0, limit - (taken or 0))
    got = min(block, max(1, left // share), left)
    if taken is not None:
        tx.execute(update(request_allowances).where(mine).values(taken=taken + got))
        return got, left - got
    # The last minute's row stays: a process that is a moment behind may still be counting there.
    past = (request_allowances.c.api_client_id == client) & (request_allowances.c.minute < minute - 1)
    tx.execute(delete(request_allowances).where(past))
    tx.execute(insert(request_allowances).values(api_client_id=client, minute=minute, taken=got))
    return got, left - got

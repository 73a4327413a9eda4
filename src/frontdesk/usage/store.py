"""The SQL of usage and quotas."""

from collections.abc import Mapping
from dataclasses import asdict, replace

import sqlalchemy as sa

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey
from frontdesk.usage.model import STORED_BYTES_PER_DAY, AccountUsage, Quota, Usage
from frontdesk.usage.tables import account_quotas, account_usage

_ADD = sa.text(
    "INSERT INTO account_usage (day, account_id, history_bytes, answer_bytes, file_bytes) "
    "VALUES (:day, :account_id, :history_bytes, :answer_bytes, :file_bytes) "
    "ON CONFLICT (day, account_id) DO UPDATE SET "
    "history_bytes = account_usage.history_bytes + excluded.history_bytes, "
    "answer_bytes = account_usage.answer_bytes + excluded.answer_bytes, "
    "file_bytes = account_usage.file_bytes + excluded.file_bytes"
)


def add_usage(tx: Tx, day: str, added: Mapping[int, Usage]) -> None:
    """Add to the day's bytes, in the order of accounts: processes that add at the same time never
    wait for each other in a circle.
    """
    rows = [{"day": day, "account_id": id_, **added[id_]._asdict()} for id_ in sorted(added)]
    if rows:
        tx.execute(_ADD, rows)


def usage_of_day(tx: Tx, day: str) -> dict[int, Usage]:
    """By account."""
    of_day = sa.select(*account_usage.c["account_id", *Usage._fields]).where(
        account_usage.c.day == day
    )
    return {account_id: Usage(*sizes) for account_id, *sizes in tx.execute(of_day)}


def storage_is_left(account_id: sa.ColumnElement[int], day: str) -> sa.ColumnElement[bool]:
    """The condition that the account in this column has not used up what it may store in the day."""
    quotas = account_quotas.c
    usage = account_usage.c
    own = sa.select(quotas.stored_bytes_per_day).where(SameKey(quotas.account_id, account_id))
    quota = sa.func.coalesce(
        own.scalar_subquery().correlate_except(account_quotas), STORED_BYTES_PER_DAY
    )
    of_day = sa.select(usage.history_bytes + usage.answer_bytes).where(
        usage.day == day, SameKey(usage.account_id, account_id)
    )
    stored = sa.func.coalesce(of_day.scalar_subquery().correlate_except(account_usage), 0)
    return stored < quota


def list_quotas(tx: Tx) -> dict[int, Quota]:
    """The quotas that differ from the default, by account."""
    return {row.account_id: Quota(*row) for row in tx.execute(sa.select(account_quotas))}


def find_quota(tx: Tx, account_id: int) -> Quota:
    query = sa.select(account_quotas).where(account_quotas.c.account_id == account_id)
    row = tx.execute(query).first()
    return Quota(*row) if row else Quota(account_id)


def change_quota(tx: Tx, account_id: int, **changes: int) -> Quota:
    """Change the limits named in `changes`, keep the others."""
    quota = replace(find_quota(tx, account_id), **changes)
    tx.execute(sa.delete(account_quotas).where(account_quotas.c.account_id == account_id))
    tx.execute(sa.insert(account_quotas).values(asdict(quota)))
    return quota


def list_usage(tx: Tx, today: str) -> dict[int, AccountUsage]:
    """The usage of each account that has added something, by account."""
    of_today = usage_of_day(tx, today)
    sums = [sa.func.sum(account_usage.c[name]) for name in Usage._fields]
    query = sa.select(account_usage.c.account_id, *sums).group_by(account_usage.c.account_id)
    found: dict[int, AccountUsage] = {}
    for account_id, *sizes in tx.execute(query):
        total = Usage(*map(int, sizes))
        found[account_id] = AccountUsage(account_id, of_today.get(account_id, Usage()), total)
    return found

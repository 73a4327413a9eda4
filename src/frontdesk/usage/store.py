"""The SQL of usage, quotas and the costs of requests."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey
from frontdesk.usage.model import STORED_BYTES_PER_DAY, AccountUsage, Quota, RequestCosts, Usage
from frontdesk.usage.tables import account_quotas, account_usage, request_costs

_ADD = sa.text(
    "INSERT INTO account_usage (day, account_id, history_bytes, answer_bytes, file_bytes) "
    "VALUES (:day, :account_id, :history_bytes, :answer_bytes, :file_bytes) "
    "ON CONFLICT (day, account_id) DO UPDATE SET "
    "history_bytes = account_usage.history_bytes + excluded.history_bytes, "
    "answer_bytes = account_usage.answer_bytes + excluded.answer_bytes, "
    "file_bytes = account_usage.file_bytes + excluded.file_bytes"
)

_ADD_COSTS = sa.text(
    "INSERT INTO request_costs (slot, client, account_id, requests, loop_us, database_us) "
    "VALUES (:slot, :client, :account_id, :requests, :loop_us, :database_us) "
    "ON CONFLICT (slot, client) DO UPDATE SET "
    "requests = request_costs.requests + excluded.requests, "
    "loop_us = request_costs.loop_us + excluded.loop_us, "
    "database_us = request_costs.database_us + excluded.database_us"
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


def add_request_costs(tx: Tx, slot: str, costs: Sequence[RequestCosts]) -> None:
    """Add to the rows of the slot. The costs are in the order of clients: processes that add at the
    same time never wait for each other in a circle.
    """
    tx.execute(_ADD_COSTS, [{"slot": slot, **asdict(each)} for each in costs])


def list_request_costs(tx: Tx, since: str) -> list[RequestCosts]:
    """The sums of each client since the slot, the costliest first."""
    columns = request_costs.c
    sums = [sa.func.sum(columns[name]) for name in ("requests", "loop_us", "database_us")]
    query = (
        sa.select(columns.client, sa.func.max(columns.account_id), *sums)
        .where(columns.slot >= since)
        .group_by(columns.client)
    )
    found = [
        RequestCosts(client, account_id, *map(int, numbers))
        for client, account_id, *numbers in tx.execute(query)
    ]
    return sorted(found, key=lambda each: (-each.loop_us - each.database_us, each.client))


def delete_request_costs(tx: Tx, before: str) -> int:
    return tx.execute(sa.delete(request_costs).where(request_costs.c.slot < before)).rowcount

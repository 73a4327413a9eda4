"""The SQL of accounts, API clients, secrets and tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, bindparam, delete, func, insert, select, update

from frontdesk.access.model import Account, ApiClient, Caller, granted, parse_scopes
from frontdesk.access.tables import (
    access_tokens,
    accounts,
    api_clients,
    client_secrets,
    failed_attempts,
    request_allowances,
)
from frontdesk.db import Tx
from frontdesk.db.lookups import Lookup
from frontdesk.db.set_sql import SameKey

_FAILURES_LOCK = 0x6C6F6769  # "logi": the first key of PostgreSQL's advisory locks on failed attempts


def create_account(tx: Tx, *, name: str, now: datetime) -> Account:
    return Account(*tx.execute(insert(accounts).values(name=name, created_at=now).returning(accounts)).one())


def list_accounts(tx: Tx, account_id: int | None = None) -> list[Account]:
    query = select(accounts).order_by(accounts.c.id)
    rows = tx.execute(query if account_id is None else query.where(accounts.c.id == account_id))
    return [Account(*row) for row in rows]


def insert_client(tx: Tx, **row: Any) -> ApiClient:
    return _client(tx.execute(insert(api_clients).values(**row).returning(api_clients)).mappings().one())


def list_clients(tx: Tx, account_id: int | None = None, *, client_id: str | None = None) -> list[ApiClient]:
    query = select(api_clients).order_by(api_clients.c.id)
    if account_id is not None:
        query = query.where(api_clients.c.account_id == account_id)
    if client_id is not None:
        query = query.where(api_clients.c.client_id == client_id)
    return [_client(row) for row in tx.execute(query).mappings()]


def _client(row: RowMapping) -> ApiClient:
    return ApiClient(**{**row, "scopes": parse_scopes(row["scopes"]) or frozenset()})


def lock_client(tx: Tx, client: int) -> None:
    """Other changes of the client wait until this transaction ends; its tokens can be used and issued meanwhile."""
    query = select(api_clients.c.id).where(api_clients.c.id == client)
    tx.execute(query.with_for_update(key_share=True))


def insert_secret(tx: Tx, client: int, *, secret_hash: bytes, now: datetime) -> None:
    tx.execute(insert(client_secrets).values(api_client_id=client, secret_hash=secret_hash, created_at=now))


def live_secret_hashes(tx: Tx, client: int) -> list[bytes]:
    live = (client_secrets.c.api_client_id == client) & client_secrets.c.revoked_at.is_(None)
    return [bytes(value) for value in tx.execute(select(client_secrets.c.secret_hash).where(live)).scalars()]


def revoke_secrets(tx: Tx, client: int, *, keep_newest: int, now: datetime) -> None:
    live = (client_secrets.c.api_client_id == client) & client_secrets.c.revoked_at.is_(None)
    query = select(client_secrets.c.id).where(live).order_by(client_secrets.c.id.desc()).offset(keep_newest)
    old = list(tx.execute(query).scalars())
    tx.execute(update(client_secrets).where(client_secrets.c.id.in_(old)).values(revoked_at=now))


def revoke_client(tx: Tx, client: int, *, now: datetime) -> None:
    never = api_clients.c.revoked_at.is_(None)
    tx.execute(update(api_clients).where((api_clients.c.id == client) & never).values(revoked_at=now))
    revoke_secrets(tx, client, keep_newest=0, now=now)
    tx.execute(update(access_tokens).where(access_tokens.c.api_client_id == client).values(revoked=True))


def replace_tokens(tx: Tx, client: int, *, now: datetime, **row: object) -> None:
    """Delete the client's expired tokens, and insert the new one."""
    old = (access_tokens.c.api_client_id == client) & (access_tokens.c.expires_at < now)
    tx.execute(delete(access_tokens).where(old))
    tx.execute(insert(access_tokens).values(api_client_id=client, created_at=now, revoked=False, **row))


_CALLER = (
    select(
        *api_clients.c["account_id", "client_id", "id", "requests_per_minute"],
        *access_tokens.c["scopes", "expires_at"],
    )
    .join(api_clients, SameKey(api_clients.c.id, access_tokens.c.api_client_id))
    .where(access_tokens.c.revoked.is_(False), api_clients.c.revoked_at.is_(None))
    .where(access_tokens.c.token_hash == bindparam("token_hash"))
)


def caller_of(token_hash: bytes) -> Lookup[Caller | None]:
    """The caller behind a token that is not revoked; it may have expired."""
    return Lookup(_CALLER, {"token_hash": token_hash}, _caller)


def _caller(rows: Sequence[Sequence[Any]]) -> Caller | None:
    if not rows:
        return None
    caller = Caller(*rows[0])
    return replace(caller, scopes=granted(parse_scopes(str(caller.scopes)) or frozenset()))


def revoke_token(tx: Tx, client: int, token_hash: bytes) -> None:
    own = (access_tokens.c.token_hash == token_hash) & (access_tokens.c.api_client_id == client)
    tx.execute(update(access_tokens).where(own).values(revoked=True))


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

"""The SQL of accounts, API clients, secrets, tokens, failed attempts and the requests of a minute."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, bindparam, delete, func, insert, select, update

from frontdesk.access.model import (
    Account,
    AccountState,
    ApiClient,
    Caller,
    ClientSecret,
    NewClient,
    granted,
    parse_scopes,
    scope_text,
)
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
from frontdesk.db.sets import SameKey, count_by_key
from frontdesk.errors import NotFound
from frontdesk.reach import Reach

MOST_DELETED = 100  # tokens, by one request for another
_FAILURES_LOCK = (
    0x6C6F6769  # "logi": the first key of PostgreSQL's advisory locks on failed attempts
)


def create_account(tx: Tx, *, name: str, now: datetime) -> Account:
    state = AccountState.ACTIVE
    row = {"name": name, "created_at": now, "state": state, "reopens_absent": True}
    return Account(*tx.execute(insert(accounts).values(row).returning(accounts)).one())


def list_accounts(tx: Tx, reach: Reach) -> list[Account]:
    """The accounts within reach, by id: one at most, or all."""
    query = select(accounts).order_by(accounts.c.id)
    if reach.account_id is not None:
        query = query.where(accounts.c.id == reach.account_id)
    return [Account(*row) for row in tx.execute(query)]


def find_account_names(tx: Tx, account_ids: Collection[int]) -> dict[int, str]:
    """The names of these accounts."""
    query = select(accounts.c.id, accounts.c.name).where(accounts.c.id.in_(sorted(account_ids)))
    return {int(id_): str(name) for id_, name in tx.execute(query)}


def list_account_page(tx: Tx, *, after_id: int, limit: int) -> list[Account]:
    """The accounts after an id, by id."""
    query = select(accounts).where(accounts.c.id > after_id).order_by(accounts.c.id).limit(limit)
    return [Account(*row) for row in tx.execute(query)]


def count_clients(tx: Tx, account_ids: Collection[int], *, most: int) -> dict[int, int]:
    """How many API clients of each account work, `most` at most."""
    rows = "FROM api_clients WHERE account_id = :key AND revoked_at IS NULL"
    return count_by_key(tx, rows, account_ids, most=most)


def account_is_active(account_id: ColumnElement[int]) -> ColumnElement[bool]:
    """The condition that the account in this column is neither suspended nor closed."""
    state = select(accounts.c.state).where(SameKey(accounts.c.id, account_id)).scalar_subquery()
    return state.correlate_except(accounts) == AccountState.ACTIVE


def lock_account(tx: Tx, account_id: int) -> Account:
    """The account; other changes of its state wait until this transaction ends. Raises NotFound."""
    query = select(accounts).where(accounts.c.id == account_id)
    row = tx.execute(query.with_for_update(key_share=True)).first()
    if row is None:
        raise NotFound("account")
    return Account(*row)


def change_account(tx: Tx, account_id: int, **changes: object) -> None:
    """Change columns of the account."""
    tx.execute(update(accounts).where(accounts.c.id == account_id).values(changes))


def insert_client(tx: Tx, new: NewClient, *, client_id: str, now: datetime) -> ApiClient:
    row = {name: getattr(new, name) for name in ("account_id", "name", "requests_per_minute")}
    row |= {"client_id": client_id, "scopes": scope_text(new.scopes), "created_at": now}
    return _client(
        tx.execute(insert(api_clients).values(row).returning(api_clients)).mappings().one()
    )


def list_clients(tx: Tx, reach: Reach, *, client_id: str | None = None) -> list[ApiClient]:
    """The clients within reach, by their database ids: all, or the one with this public id.
    Clients of operators have no account, and are within reach of EVERY only.
    """
    query = select(api_clients).order_by(api_clients.c.id)
    if reach.account_id is not None:
        query = query.where(api_clients.c.account_id == reach.account_id)
    if client_id is not None:
        query = query.where(api_clients.c.client_id == client_id)
    return [_client(row) for row in tx.execute(query).mappings()]


def list_live_clients(tx: Tx, reach: Reach) -> list[ApiClient]:
    """As `list_clients`, without revoked ones."""
    query = select(api_clients).where(api_clients.c.revoked_at.is_(None)).order_by(api_clients.c.id)
    if reach.account_id is not None:
        query = query.where(api_clients.c.account_id == reach.account_id)
    return [_client(row) for row in tx.execute(query).mappings()]


def list_revoked_clients(tx: Tx, account_id: int, *, limit: int) -> list[ApiClient]:
    """The newest of the account's revoked clients, newest first."""
    columns = api_clients.c
    mine = (columns.account_id == account_id) & columns.revoked_at.is_not(None)
    newest = (columns.account_id.desc(), columns.id.desc())
    query = select(api_clients).where(mine).order_by(*newest).limit(limit)
    return [_client(row) for row in tx.execute(query).mappings()]


def count_live_clients(tx: Tx, account_id: int) -> int:
    """The clients of the account that are not revoked."""
    columns = api_clients.c
    mine = (columns.account_id == account_id) & columns.revoked_at.is_(None)
    return int(tx.execute(select(func.count()).select_from(api_clients).where(mine)).scalar_one())


def last_uses(tx: Tx, clients: Collection[int]) -> dict[int, str]:
    """The UTC day on which a secret of each client, by database id, last got a token; clients whose
    secrets never did are missing.
    """
    columns = client_secrets.c
    of = columns.api_client_id
    mine = of.in_(sorted(clients)) & columns.last_used_on.is_not(None)
    query = select(of, func.max(columns.last_used_on)).where(mine).group_by(of)
    return {int(client): str(day) for client, day in tx.execute(query)}


def client_number(tx: Tx, client_id: str) -> int | None:
    """The number under which the audit trail has the client; None without such a client."""
    query = select(api_clients.c.id).where(api_clients.c.client_id == client_id)
    return tx.execute(query).scalar()


def find_client_ids(tx: Tx, clients: Collection[int]) -> dict[int, str]:
    """The public ids of the clients with these database ids."""
    columns = api_clients.c
    query = select(columns.id, columns.client_id).where(columns.id.in_(sorted(clients)))
    return {int(client): str(client_id) for client, client_id in tx.execute(query)}


def find_client_names(tx: Tx, reach: Reach, client_ids: Collection[str]) -> dict[str, str]:
    """The names of those of the clients, by their public ids, that are within reach."""
    columns = api_clients.c
    query = select(columns.client_id, columns.name).where(columns.client_id.in_(sorted(client_ids)))
    if reach.account_id is not None:
        query = query.where(columns.account_id == reach.account_id)
    return {str(client_id): str(name) for client_id, name in tx.execute(query)}


def _client(row: RowMapping) -> ApiClient:
    return ApiClient(**{**row, "scopes": parse_scopes(row["scopes"]) or frozenset()})


def lock_client(tx: Tx, client: int) -> None:
    """Other changes of the client wait until this transaction ends; its tokens can be used and
    issued meanwhile.
    """
    query = select(api_clients.c.id).where(api_clients.c.id == client)
    tx.execute(query.with_for_update(key_share=True))


def insert_secret(tx: Tx, client: int, **row: Any) -> None:
    tx.execute(insert(client_secrets).values(api_client_id=client, **row))


def live_secrets(tx: Tx, client: int, now: datetime) -> Sequence[Any]:
    """The client's live secrets: `id`, `secret_hash`, `last_used_on`."""
    query = select(*client_secrets.c["id", "secret_hash", "last_used_on"]).where(_is_live(client))
    in_time = client_secrets.c.expires_at.is_(None) | (client_secrets.c.expires_at > now)
    return tx.execute(query.where(in_time)).all()


def list_secrets(tx: Tx, client: int) -> list[ClientSecret]:
    """The newest first."""
    names = [field.name for field in fields(ClientSecret)]
    query = select(*client_secrets.c[*names]).where(client_secrets.c.api_client_id == client)
    return [ClientSecret(*row) for row in tx.execute(query.order_by(client_secrets.c.id.desc()))]


def note_use(tx: Tx, secret: int, day: str) -> None:
    tx.execute(update(client_secrets).where(client_secrets.c.id == secret).values(last_used_on=day))


def revoke_secrets(tx: Tx, client: int, *, keep_newest: int, now: datetime) -> None:
    query = select(client_secrets.c.id).where(_is_live(client)).order_by(client_secrets.c.id.desc())
    old = list(tx.execute(query.offset(keep_newest)).scalars())
    tx.execute(update(client_secrets).where(client_secrets.c.id.in_(old)).values(revoked_at=now))


def revoke_secret(tx: Tx, client: int, secret: int, *, now: datetime) -> bool:
    """True if the client had this secret, not revoked yet."""
    mine = _is_live(client) & (client_secrets.c.id == secret)
    return tx.execute(update(client_secrets).where(mine).values(revoked_at=now)).rowcount == 1


def revoke_tokens(tx: Tx, client: int, now: datetime) -> int:
    """The number of tokens that were still valid."""
    mine = (access_tokens.c.api_client_id == client) & (access_tokens.c.expires_at > now)
    return tx.execute(delete(access_tokens).where(mine)).rowcount


def revoke_client(tx: Tx, client: int, *, now: datetime) -> None:
    never = api_clients.c.revoked_at.is_(None)
    tx.execute(
        update(api_clients).where((api_clients.c.id == client) & never).values(revoked_at=now)
    )
    revoke_secrets(tx, client, keep_newest=0, now=now)
    revoke_tokens(tx, client, now)


def _is_live(client: int) -> ColumnElement[bool]:
    return (client_secrets.c.api_client_id == client) & client_secrets.c.revoked_at.is_(None)


def replace_tokens(tx: Tx, client: int, *, keep_newest: int, now: datetime, **row: object) -> None:
    """Delete the client's expired tokens, and up to 100 of the oldest beyond `keep_newest`; insert
    the new one.
    """
    mine = access_tokens.c.api_client_id == client
    tx.execute(delete(access_tokens).where(mine, access_tokens.c.expires_at < now))
    newest = (
        select(access_tokens.c.token_hash).where(mine).order_by(access_tokens.c.expires_at.desc())
    )
    if beyond := list(tx.execute(newest.offset(keep_newest).limit(MOST_DELETED)).scalars()):
        tx.execute(delete(access_tokens).where(access_tokens.c.token_hash.in_(beyond)))
    tx.execute(insert(access_tokens).values(api_client_id=client, created_at=now, **row))


_CALLER = (
    select(
        *api_clients.c["account_id", "client_id", "id", "requests_per_minute"],
        *access_tokens.c["scopes", "expires_at"],
        *accounts.c["state", "time_zone"],
    )
    .select_from(
        access_tokens.join(
            api_clients, SameKey(api_clients.c.id, access_tokens.c.api_client_id)
        ).join(accounts, SameKey(accounts.c.id, api_clients.c.account_id), isouter=True)
    )
    .where(api_clients.c.revoked_at.is_(None))
    .where(access_tokens.c.token_hash == bindparam("token_hash"))
)


def caller_of(token_hash: bytes) -> Lookup[Caller | None]:
    """The caller behind a token; it may have expired."""
    return Lookup(_CALLER, {"token_hash": token_hash}, _caller)


def _caller(rows: Sequence[Sequence[Any]]) -> Caller | None:
    if not rows:
        return None
    caller = Caller(*rows[0])
    scopes = granted(parse_scopes(str(caller.scopes)) or frozenset())
    state = None if caller.account_state is None else AccountState(caller.account_state)
    return replace(caller, scopes=scopes, account_state=state)


def revoke_token(tx: Tx, client: int, token_hash: bytes) -> bool:
    own = (access_tokens.c.token_hash == token_hash) & (access_tokens.c.api_client_id == client)
    return tx.execute(delete(access_tokens).where(own)).rowcount == 1


def lock_failures(tx: Tx, subject_hash: bytes) -> None:
    """One transaction at a time counts and records failures of the subject (on SQLite a writer is
    alone anyway).
    """
    if tx.dialect.name != "sqlite":
        key = int.from_bytes(subject_hash[:4], signed=True)
        tx.execute(select(func.pg_advisory_xact_lock(_FAILURES_LOCK, key)))


def failures_within(
    tx: Tx, subject_hash: bytes, *, window: tuple[datetime, datetime], limit: int
) -> list[datetime]:
    """The times of the subject's newest failures, newest first, at most `limit` of them."""
    after, until = window
    columns = failed_attempts.c
    mine = columns.subject_hash == subject_hash
    query = select(columns.failed_at).where(
        mine, columns.failed_at > after, columns.failed_at <= until
    )
    query = query.order_by(columns.failed_at.desc()).limit(limit)
    return list(tx.execute(query).scalars())


def add_failures(
    tx: Tx, subjects: Iterable[bytes], *, now: datetime, window: tuple[datetime, datetime]
) -> list[int]:
    """Insert the failures and return their ids, and delete up to 20 outside the window, by the
    primary key: more than one attempt adds. So the table stays small, and the cost of an attempt
    does not grow.
    """
    after, until = window
    oldest = select(failed_attempts.c.id).order_by(failed_attempts.c.id).limit(20)
    # Another process is already deleting locked rows, and waiting for it could be a deadlock.
    mine = failed_attempts.c.id.in_(oldest.with_for_update(skip_locked=True))
    over = (failed_attempts.c.failed_at <= after) | (failed_attempts.c.failed_at > until)
    tx.execute(delete(failed_attempts).where(mine & over))
    added = insert(failed_attempts).returning(failed_attempts.c.id)
    rows = [{"subject_hash": hash_, "failed_at": now} for hash_ in subjects]
    return [int(tx.execute(added.values(row)).scalar_one()) for row in rows]


def delete_failures(tx: Tx, ids: Collection[int]) -> None:
    tx.execute(delete(failed_attempts).where(failed_attempts.c.id.in_(sorted(ids))))


def take_allowance(
    tx: Tx, client: int, minute: int, *, block: int, limit: int, share: int
) -> tuple[int, int]:
    """Take up to `block` of the client's requests of this minute: at most one part in `share` of
    the rest, and at least one while there is one. Returns how many were taken, and how many are
    left for any process.
    """
    mine = (request_allowances.c.api_client_id == client) & (request_allowances.c.minute == minute)
    taken = tx.execute(select(request_allowances.c.taken).where(mine).with_for_update()).scalar()
    left = max(0, limit - (taken or 0))
    got = min(block, max(1, left // share), left)
    if taken is not None:
        tx.execute(update(request_allowances).where(mine).values(taken=taken + got))
        return got, left - got
    # The last minute's row stays: a process with a slower clock may still count there.
    past = (request_allowances.c.api_client_id == client) & (
        request_allowances.c.minute < minute - 1
    )
    tx.execute(delete(request_allowances).where(past))
    tx.execute(insert(request_allowances).values(api_client_id=client, minute=minute, taken=got))
    return got, left - got

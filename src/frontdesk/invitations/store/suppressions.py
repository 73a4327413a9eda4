"""The SQL of the suppression list."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, update

from frontdesk.db import Tx, sets
from frontdesk.db.sets import SetTransaction
from frontdesk.invitations import model
from frontdesk.invitations.tables import suppressions
from frontdesk.text import fold_email, keyed_hash

EVERYBODY = 0  # as the account of a suppression


def find_suppressed(
    tx: SetTransaction, addresses: Collection[str]
) -> Callable[[], set[tuple[int | None, str]]]:
    """Which of the folded addresses must not be mailed, each with the account that mailed it; of an
    erased member the list has a hash. Returns a function that gives them once the round trip has
    ended.
    """
    hashed = _hashing(tx)
    asked = {hashed(address): address for address in addresses} | {each: each for each in addresses}
    found = sets.find_set(
        tx, suppressions, "address_folded", asked, columns=("address_folded", "account_id")
    )
    return lambda: {(row["account_id"], asked[row["address_folded"]]) for row in found.rows}


def find_blocked(tx: SetTransaction, mails: Collection[tuple[int, str]]) -> set[tuple[int, str]]:
    """Which of these, each an account and a folded address, must not be mailed: everybody's mail to
    the address is suppressed, or this account's.
    """
    hashed = _hashing(tx)
    addresses = {address for _, address in mails}
    asked = {hashed(address): address for address in addresses} | {each: each for each in addresses}
    columns = ("address_folded", "only_account_id")
    rows = sets.find_set(tx, suppressions, "address_folded", asked, columns=columns).rows
    found = {(row["only_account_id"], asked[row["address_folded"]]) for row in rows}
    return {
        (account_id, address)
        for account_id, address in mails
        if (EVERYBODY, address) in found or (account_id, address) in found
    }


def hash_suppressions(tx: Tx, addresses: Collection[str]) -> int:
    """Keep only keyed hashes of those of the folded addresses that are suppressed; how many there
    were.
    """
    hashed = _hashing(tx)
    column = suppressions.c.address_folded
    only = suppressions.c.only_account_id
    query = select(column, only).where(column.in_(sorted(addresses)))
    plain = tx.execute(query).all()
    for address, account_id in plain:
        # Its hash is on the list already when the address was suppressed again after an erasure.
        tx.execute(delete(suppressions).where(column == hashed(address), only == account_id))
        mine = (column == address, only == account_id)
        tx.execute(update(suppressions).where(*mine).values(address_folded=hashed(address)))
    return len({address for address, _ in plain})


def _hashing(tx: SetTransaction) -> Callable[[str], str]:
    """Gives the keyed hash of an address. No address looks like a hash, which has no `@`."""
    hasher = sets.keyed_hasher(tx, size=32, person=b"suppression")
    return lambda address: "#" + keyed_hash(address, hasher)


def suppress(
    tx: Tx,
    address: str,
    reason: model.SuppressionReason,
    *,
    now: datetime,
    account_id: int | None = None,
) -> bool:
    """Suppress the address in any spelling. False if it was on the list; its first reason stays.

    `account_id` is the account that mailed the address: only this account is told when it names the
    address again. An unsubscribing is for this account only, all other reasons are for everybody.
    """
    folded = fold_email(address)
    is_own = reason is model.SuppressionReason.UNSUBSCRIBE and account_id is not None
    only = account_id if is_own else EVERYBODY
    mine = _rows_of(tx, folded)
    query = select(suppressions.c.reason).where(mine, suppressions.c.only_account_id == only)
    if tx.execute(query).first() is not None:
        return False
    row = {"address_folded": folded, "only_account_id": only, "reason": reason}
    tx.execute(insert(suppressions).values(row | {"created_at": now, "account_id": account_id}))
    return True


def unsuppress(tx: Tx, address: str) -> bool:
    """Take the address off the list, for everybody. False if it was not on it."""
    return tx.execute(delete(suppressions).where(_rows_of(tx, fold_email(address)))).rowcount > 0


def _rows_of(tx: Tx, folded: str) -> ColumnElement[bool]:
    """Those of an address, or of its hash."""
    return suppressions.c.address_folded.in_((folded, _hashing(tx)(folded)))


def list_suppressions(
    tx: Tx, *, limit: int, address: str | None = None, account_id: int | None = None
) -> list[Any]:
    """The first `limit` (`address`, `only_account_id`, `reason`, `created_at`), in the order of the
    addresses; of one folded address, or of all; those only that concern an account, or all.
    """
    columns = suppressions.c
    query = select(
        columns.address_folded.label("address"), *columns["only_account_id", "reason", "created_at"]
    )
    if address is not None:
        query = query.where(_rows_of(tx, address))
    if account_id is not None:
        query = query.where(columns.only_account_id.in_((EVERYBODY, account_id)))
    order = (columns.address_folded, columns.only_account_id)
    return list(tx.execute(query.order_by(*order).limit(limit)))

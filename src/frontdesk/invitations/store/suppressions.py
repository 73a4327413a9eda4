"""The SQL of the suppression list."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from frontdesk.db import Tx, sets
from frontdesk.db.sets import SetTransaction
from frontdesk.invitations import model
from frontdesk.invitations.tables import suppressions
from frontdesk.text import fold_email, keyed_hash


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


def hash_suppressions(tx: Tx, addresses: Collection[str]) -> int:
    """Keep only keyed hashes of those of the folded addresses that are suppressed; how many there
    were.
    """
    hashed = _hashing(tx)
    column = suppressions.c.address_folded
    plain = tx.execute(select(column).where(column.in_(sorted(addresses)))).scalars().all()
    for address in plain:
        # Its hash is on the list already when the address was suppressed again after an erasure.
        tx.execute(delete(suppressions).where(column == hashed(address)))
        tx.execute(
            update(suppressions).where(column == address).values(address_folded=hashed(address))
        )
    return len(plain)


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
    address again.
    """
    folded = fold_email(address)
    if find_suppressed(tx, {folded})():
        return False
    row = {"address_folded": folded, "reason": reason, "created_at": now, "account_id": account_id}
    tx.execute(insert(suppressions).values(row))
    return True


def unsuppress(tx: Tx, address: str) -> bool:
    """Take the address off the list. False if it was not on it."""
    folded = fold_email(address)
    column = suppressions.c.address_folded
    stored = (folded, _hashing(tx)(folded))
    return tx.execute(delete(suppressions).where(column.in_(stored))).rowcount > 0


def list_suppressions(tx: Tx, *, limit: int, address: str | None = None) -> list[Any]:
    """The first `limit` (`address`, `reason`, `created_at`), in the order of the addresses; of one
    folded address, or of all.
    """
    columns = suppressions.c
    query = select(columns.address_folded.label("address"), columns.reason, columns.created_at)
    if address is not None:
        query = query.where(columns.address_folded.in_((address, _hashing(tx)(address))))
    return list(tx.execute(query.order_by(columns.address_folded).limit(limit)))

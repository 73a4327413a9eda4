"""The SQL of the suppression list."""

from collections.abc import Callable, Collection
from datetime import datetime

from sqlalchemy import ColumnElement, delete, insert, select, update

from frontdesk.db import Tx, sets
from frontdesk.db.sets import SetTransaction
from frontdesk.invitations import model
from frontdesk.invitations.tables import suppressions
from frontdesk.reach import Reach
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
    query = select(column, only, suppressions.c.reason).where(column.in_(sorted(addresses)))
    plain = tx.execute(query).all()
    for address, account_id, reason in plain:
        same = (only == account_id, suppressions.c.reason == reason)
        # Its hash is on the list already when the address was suppressed again after an erasure.
        tx.execute(delete(suppressions).where(column == hashed(address), *same))
        mine = update(suppressions).where(column == address, *same)
        tx.execute(mine.values(address_folded=hashed(address)))
    return len({address for address, *_ in plain})


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
    """Suppress the address in any spelling. False if it was on the list for this reason.

    `account_id` is the account that mailed the address: only this account is told when it names the
    address again. An unsubscribing is for this account only, all other reasons are for everybody.
    """
    folded = fold_email(address)
    is_own = reason is model.SuppressionReason.UNSUBSCRIBE and account_id is not None
    only = account_id if is_own else EVERYBODY
    mine = _rows_of(tx, folded)
    same = (suppressions.c.only_account_id == only, suppressions.c.reason == reason)
    query = select(suppressions.c.reason).where(mine, *same)
    if tx.execute(query).first() is not None:
        return False
    row = {"address_folded": folded, "only_account_id": only, "reason": reason}
    tx.execute(insert(suppressions).values(row | {"created_at": now, "account_id": account_id}))
    return True


def lift(tx: Tx, reach: Reach, address: str, reasons: Collection[model.SuppressionReason]) -> None:
    """Take the folded address off the list where it is there for these reasons, within reach."""
    mine = (_rows_of(tx, address), suppressions.c.reason.in_(sorted(reasons)))
    tx.execute(delete(suppressions).where(*mine, *_within(reach)))


def _within(reach: Reach) -> list[ColumnElement[bool]]:
    """The condition that the account's own mail has caused it: another account's would tell that
    the person belongs to another customer.
    """
    account_id = reach.account_id
    return [] if account_id is None else [suppressions.c.account_id == account_id]


def _rows_of(tx: Tx, folded: str) -> ColumnElement[bool]:
    """Those of an address, or of its hash."""
    return suppressions.c.address_folded.in_((folded, _hashing(tx)(folded)))


_SHOWN = ("address_folded", "only_account_id", "reason", "created_at")


def list_suppressions(
    tx: Tx, reach: Reach, *, limit: int, address: str | None = None
) -> list[model.Suppression]:
    """The first `limit` within reach, in the order of the addresses; of one folded address, or of
    all. Within reach of an account is what its own mail has caused.
    """
    columns = suppressions.c
    query = select(*columns[_SHOWN]).where(*_within(reach))
    if address is not None:
        query = query.where(_rows_of(tx, address))
    order = (columns.address_folded, columns.only_account_id, columns.reason)
    rows = tx.execute(query.order_by(*order).limit(limit))
    return [model.Suppression._make(row) for row in rows]


def find_blocking(
    tx: Tx, reach: Reach, *, account_id: int, address: str
) -> list[model.Suppression]:
    """What keeps the account's mail from the folded address, within reach."""
    columns = suppressions.c
    query = select(*columns[_SHOWN]).where(_rows_of(tx, address), *_within(reach))
    query = query.where(columns.only_account_id.in_((EVERYBODY, account_id)))
    rows = tx.execute(query.order_by(columns.only_account_id, columns.reason))
    return [model.Suppression._make(row) for row in rows]
